//! Files that root creates for a broker that runs as another user.

use std::path::Path;

use thrum_files::Folder;

/// The warning about a new file that only root would be able to read. An existing file keeps its
/// owner, and a file in the broker's directory becomes the broker's.
pub(super) fn warning(file: &Path) -> Option<String> {
    let file = Folder::resolve_own_links(file);
    let folder = Folder::containing(&file).ok()?;
    let is_for_root = folder.creates_for_root_only(file.file_name()?);
    is_for_root.then(|| {
        let file = file.display();
        format!(
            "note: root alone can read the new file {file}: a broker that runs as another user takes nothing of it over \
             before its group may read it (chgrp GROUP {file} && chmod 640 {file})"
        )
    })
}
