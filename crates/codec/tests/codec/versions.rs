//! Names of protocol versions.

use thrum_codec::Version;

#[test]
fn every_version_has_the_name_of_its_specification() {
    let names = Version::ALL.map(Version::name);
    assert_eq!(names, ["3.1", "3.1.1", "5.0"]);
    assert_eq!(names.map(Version::named), Version::ALL.map(Some));
    for other in ["", "5", "3.1.1 ", "MQTT 5.0"] {
        assert_eq!(Version::named(other), None, "{other:?}");
    }
}
