//! Files that root makes for a broker that runs as somebody else.

use std::path::Path;

use thrum_files::Folder;

/// What is to be said of a file that is about to be made, if root alone will be able to read it.
/// One that is there keeps its owner, and one in a directory of the broker's becomes the broker's.
pub(super) fn warning(file: &Path) -> Option<String> {
    let file = Folder::through_own_links(file);
    let folder = Folder::around(&file).ok()?;
    let is_for_root = folder.makes_for_root_alone(file.file_name()?);
    is_for_root.then(|| {
        let file = file.display();
        format!(
            "note: root alone can read the new file {file}: a broker that runs as another user takes nothing of it over \
             before its group may read it (chgrp GROUP {file} && chmod 640 {file})"
        )
    })
}
