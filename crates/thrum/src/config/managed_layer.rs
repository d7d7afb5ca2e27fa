//! The file of the management interface among the other sources of settings.

use super::*;

const FILE: &str = "thrum.toml";

fn source(path: &str, text: &str) -> Arc<Source> {
    Arc::new(Source::new(PathBuf::from(path), text.to_owned()))
}

/// The file of the management interface below others.
fn with_managed(managed: &str, file: &str, list: &[(&str, &str)]) -> Result<Loaded, Problems> {
    let layers = Layers {
        managed: Some(source("data/managed.toml", managed)),
        files: vec![source(FILE, file)],
        variables: list
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect(),
    };
    compose_layers(&layers, &Request::default())
}

#[test]
fn every_other_source_wins_over_what_the_management_interface_sets() {
    let managed = "[limits]\nmax_packet = \"2MB\"\nclient = { queue = 5, inflight = 6 }\n";
    let variable = [("THRUM_LIMITS__CLIENT__INFLIGHT", "9")];
    let loaded = with_managed(managed, "limits.client.queue = 8\n", &variable).unwrap();
    let limits = &loaded.config.limits;
    assert_eq!(limits.packet.max_packet, 2_000_000);
    assert_eq!((limits.client.queue, limits.client.inflight), (8, 9));
    let origin = |key| loaded.origin(key).to_string();
    assert_eq!(origin("limits.max_packet"), "managed data/managed.toml:2");
    assert_eq!(origin("limits.client.queue"), "thrum.toml:1");
    assert!(loaded.origin("limits.client.queue").is_pinned());
    assert!(!loaded.origin("limits.max_packet").is_pinned());
    let files: Vec<_> = loaded
        .files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    assert_eq!(files, ["data/managed.toml", FILE]);
}

#[test]
fn a_listener_that_is_set_over_the_management_interface_stands_beside_those_of_the_file() {
    let managed = "[listeners.more]\nbind = 1885\n";
    let file = "[listeners.mqtt]\nbind = 1884\n";
    let loaded = with_managed(managed, file, &[]).unwrap();
    let names: Vec<&str> = loaded.config.listeners.keys().map(String::as_str).collect();
    assert_eq!(names, ["more", "mqtt"]);
}

#[test]
fn the_file_of_the_management_interface_is_read_from_the_directory_that_the_others_name() {
    let folder = std::env::temp_dir().join(format!("thrum-managed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let request = Request {
        dev: true,
        flags: vec![("node.data_dir", folder.display().to_string(), "--data-dir")],
        ..Request::default()
    };
    assert_eq!(load(&request).unwrap().config.node.name, "thrum");
    let file = folder.join(managed::FILE);
    std::fs::write(&file, "node.name = \"edge\"\n").unwrap();
    assert_eq!(load(&request).unwrap().config.node.name, "edge");
    let other = load_with(&request, "node.name = \"other\"\n").unwrap();
    assert_eq!(other.config.node.name, "other");
    std::fs::write(&file, "node.data_dir = \"x\"\n").unwrap();
    let refused = load(&request).unwrap_err().to_string();
    assert!(refused.contains("the directory of this file"), "{refused}");
    // A link could lead anywhere.
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
    assert!(load(&request).is_err());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_reload_reads_the_file_of_the_directory_of_the_start() {
    let folder = std::env::temp_dir().join(format!("thrum-reloaded-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("new")).unwrap();
    std::fs::write(folder.join(managed::FILE), "node.name = \"edge\"\n").unwrap();
    let new = folder.join("new").display().to_string();
    let mut request = Request {
        dev: true,
        flags: vec![("node.data_dir", new.clone(), "--data-dir")],
        data_dir: Some(folder.clone()),
        ..Request::default()
    };
    let loaded = load(&request).unwrap();
    assert_eq!(loaded.config.node.name, "edge");
    assert_eq!(loaded.config.node.data_dir, Path::new(&new));
    // A broker that began without one has no such file.
    request.data_dir = Some(PathBuf::new());
    assert_eq!(load(&request).unwrap().config.node.name, "thrum");
    std::fs::remove_dir_all(&folder).unwrap();
}
