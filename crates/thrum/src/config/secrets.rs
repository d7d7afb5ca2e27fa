//! Secrets in a configuration: nobody sees them, and a changed one is a change.

use super::*;

fn read(text: &str) -> Result<Loaded, Problems> {
    let source = Source::new(PathBuf::from("thrum.toml"), text.to_owned());
    compose(&[Arc::new(source)], Vec::new(), &Request::default())
}

#[test]
fn values_of_headers_are_not_shown() {
    let text = "[auth.http.idp]\nurl = \"https://id.example.com/\"\nheaders = [\"X-Key: geheim\", \"geheim\"]";
    let loaded = read(text).unwrap();
    for shown in [
        listing(&loaded, false),
        listing(&loaded, true),
        differences(&loaded),
        format!("{:?}", loaded.config),
    ] {
        assert!(!shown.contains("geheim"), "{shown}");
    }
    assert!(listing(&loaded, false).contains("headers = [\"X-Key: ***\", \"***\"]"));
    let other = read(&text.replace("X-Key: geheim", "X-Key: other")).unwrap();
    let changed = changed_keys(&loaded.config, &other.config);
    assert_eq!(changed, ["auth.http.idp.headers"]);
    let wrong = read("auth.http.idp.headers = \"X-Key: geheim\"").unwrap_err();
    assert!(!wrong.to_string().contains("geheim"), "{wrong}");
}

#[test]
fn passwords_in_urls_are_not_shown_and_make_a_difference() {
    let text = "[auth.redis.r]\nurl = \"redis://u:geheim@h/0\"";
    let loaded = read(text).unwrap();
    for shown in [
        listing(&loaded, true),
        differences(&loaded),
        format!("{:?}", loaded.config),
    ] {
        assert!(!shown.contains("geheim"), "{shown}");
    }
    assert!(listing(&loaded, false).contains("url = \"redis://u:***@h/0\""));
    let other = read(&text.replace("geheim", "other")).unwrap();
    let changed = changed_keys(&loaded.config, &other.config);
    assert_eq!(changed, ["auth.redis.r.url"]);
    for wrong in [
        text.replace("\"redis://u:geheim@h/0\"", "[\"redis://u:geheim@h\"]"),
        text.replace("url = \"redis://u:geheim@h/0\"", "url = { geheim = 1 }"),
    ] {
        let wrong = read(&wrong).unwrap_err().to_string();
        assert!(wrong.contains("thrum.toml:2: auth.redis.r.url"), "{wrong}");
        assert!(!wrong.contains("geheim"), "{wrong}");
    }
}

#[test]
fn the_places_of_problems_are_told_without_their_lines() {
    let text = "[limits]\nqueue = \"geheim\"\n[auth.http.idp]\nheaders = \"X: geheim\"";
    let wrong = read(text).unwrap_err();
    assert_eq!(wrong.places(), "thrum.toml:2:1, thrum.toml:4");
}
