// A disk that loses what was not synced, for one directory of the process that loads this library (LD_PRELOAD).
//
// Every write, truncation and rename below $LOSSY_DISK_DATA is recorded in $LOSSY_DISK_SIDE before
// it happens; a sync of the file, or of the folder for names, deletes the records. After the
// process was killed, its starter can undo the remaining records, as a loss of power may do. Real
// syncs are never called, so only the records define which data is safe.
//
// Files in the side directory, which must be on the same file system:
//   control        written by the test: struct control, read before each operation
//   seen           written here: struct seen
//   names          one line per change of a name, and per sync of a folder
//   file-N.data    hard link to a file that was opened for writing
//   file-N.undo    struct note and the bytes that a write replaced, one after the other
//
// Kept small on purpose: calls that thrum does not use on its files (mmap, dup, O_APPEND) are not
// followed; `seen` lets the test detect that nothing was recorded.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// The test's settings. All fields are 64 bits, in the byte order of the machine.
struct control {
    uint64_t kill_at;          // number of the operation that kills the process, from 1; 0 is never
    uint64_t kill_when;        // 0 before it, 1 in the middle of a write, 2 after it
    uint64_t sync_errno;       // syncs fail with it; 0 is no fault
    uint64_t write_errno;      // writes fail with it; 0 is no fault
    uint64_t write_bytes_max;  // bytes written by this process after which writes fail
    uint64_t sync_micros;      // a sync takes this long
};

// This library's counts since the process started.
struct seen {
    uint64_t operations;
    uint64_t write_bytes;
    uint64_t syncs;
    uint64_t failures;
};

enum kind { WRITE = 1, TRUNCATE = 2, SYNC_FAILED = 3, SYNCED = 4 };

struct note {
    uint64_t kind;
    uint64_t offset;     // of a write; new size of a truncation
    uint64_t length;     // bytes that the write wants to write
    uint64_t size;       // of the file before
    uint64_t old_bytes;  // bytes that follow
};

struct file {
    dev_t device;
    ino_t inode;
    uint64_t serial;
    int undo;
    bool sync_failed;  // notes before a failed sync are kept for good
};

enum { FILES_MAX = 4096, DESCRIPTORS_MAX = 65536 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // guards all below
static char data[PATH_MAX], side[PATH_MAX];
static struct file files[FILES_MAX];
static int files_count;
static uint64_t next_serial = 1;
static short file_of[DESCRIPTORS_MAX];  // index + 1
static int control_fd = -1, seen_fd = -1, names_fd = -1;
static struct control control;
static struct seen seen;

static void fatal(const char *what)
{
    dprintf(STDERR_FILENO, "lossy disk: %s: %s\n", what, strerror(errno));
    abort();
}

static int raw_open(const char *path, int flags, mode_t mode)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode);
}

static void raw_append(int fd, const void *bytes, size_t count)
{
    if (syscall(SYS_write, fd, bytes, count) != (long)count) fatal("cannot write to the side directory");
}

static int side_file(const char *name, int flags)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", side, name);
    int fd = raw_open(path, flags, 0600);
    if (fd < 0) fatal(path);
    return fd;
}

static void notes_of(struct file *file)
{
    char name[64];
    snprintf(name, sizeof name, "file-%llu.undo", (unsigned long long)file->serial);
    file->undo = side_file(name, O_RDWR | O_CREAT | O_APPEND);
    struct note note;
    off_t at = 0;
    while (syscall(SYS_pread64, file->undo, &note, sizeof note, at) == (long)sizeof note) {
        file->sync_failed |= note.kind == SYNC_FAILED;
        at += (off_t)(sizeof note + note.old_bytes);
    }
}

static struct file *add_file(const struct stat *status, uint64_t serial)
{
    if (files_count == FILES_MAX) fatal("too many files");
    struct file *file = &files[files_count++];
    *file = (struct file){ status->st_dev, status->st_ino, serial, -1, false };
    if (serial >= next_serial) next_serial = serial + 1;
    notes_of(file);
    return file;
}

// Changes that a previous process recorded and did not sync are still not safe.
static void take_over(void)
{
    DIR *folder = opendir(side);
    if (!folder) fatal(side);
    for (struct dirent *entry; (entry = readdir(folder));) {
        unsigned long long serial;
        char rest[8];
        struct stat status;
        if (sscanf(entry->d_name, "file-%llu.%7s", &serial, rest) != 2 || strcmp(rest, "data")) continue;
        if (fstatat(dirfd(folder), entry->d_name, &status, 0) == 0) add_file(&status, serial);
    }
    closedir(folder);
}

__attribute__((constructor)) static void start(void)
{
    const char *data_path = getenv("LOSSY_DISK_DATA"), *side_path = getenv("LOSSY_DISK_SIDE");
    if (!data_path || !side_path) return;
    snprintf(data, sizeof data, "%s", data_path);
    snprintf(side, sizeof side, "%s", side_path);
    control_fd = side_file("control", O_RDONLY);
    seen_fd = side_file("seen", O_RDWR | O_CREAT | O_TRUNC);
    names_fd = side_file("names", O_RDWR | O_CREAT | O_APPEND);
    take_over();
}

static bool below(const char *path)
{
    size_t length = strlen(data);
    return length && !strncmp(path, data, length) && (path[length] == '/' || !path[length]);
}

// Whether a path is below the directory; `full` becomes its absolute form.
static bool is_ours(int folder, const char *path, char full[PATH_MAX])
{
    if (control_fd < 0) return false;
    if (path[0] == '/') {
        snprintf(full, PATH_MAX, "%s", path);
        return below(full);
    }
    char link[64], base[PATH_MAX];
    if (folder == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, base, sizeof base - 1);
    if (length < 0) return false;
    base[length] = 0;
    if (snprintf(full, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return false;
    return below(full);
}

static void end_here(void)
{
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

static void maybe_end(uint64_t when)
{
    if (control.kill_at && seen.operations == control.kill_at && control.kill_when == when) end_here();
}

static void show_seen(void)
{
    if (syscall(SYS_pwrite64, seen_fd, &seen, sizeof seen, 0) != (long)sizeof seen) fatal("seen");
}

// Every operation begins with this and ends with `finished`.
static void begin(void)
{
    struct control now;
    if (syscall(SYS_pread64, control_fd, &now, sizeof now, 0) == (long)sizeof now) control = now;
    seen.operations++;
    show_seen();
    maybe_end(0);
}

static void finished(bool failed)
{
    int kept = errno;
    seen.failures += failed;
    show_seen();
    maybe_end(2);
    errno = kept;
}

static struct file *known(const struct stat *status)
{
    for (int index = files_count; index-- > 0;)
        if (files[index].inode == status->st_ino && files[index].device == status->st_dev) return &files[index];
    return NULL;
}

static void keep_link(const char *path, uint64_t serial)
{
    char kept[2 * PATH_MAX];
    snprintf(kept, sizeof kept, "%s/file-%llu.data", side, (unsigned long long)serial);
    if (linkat(AT_FDCWD, path, AT_FDCWD, kept, 0)) fatal(kept);
}

// The file behind a path, followed from now on; none if it does not exist or is a folder.
static struct file *follow(const char *path, uint64_t serial)
{
    struct stat status;
    if (fstatat(AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW) || !S_ISREG(status.st_mode)) return NULL;
    struct file *file = known(&status);
    if (file) return file;
    serial = serial ? serial : next_serial++;
    keep_link(path, serial);
    return add_file(&status, serial);
}

static struct file *file_behind(int fd)
{
    if (control_fd < 0 || fd < 0 || fd >= DESCRIPTORS_MAX || !file_of[fd]) return NULL;
    struct file *file = &files[file_of[fd] - 1];
    struct stat status;
    bool same = !fstat(fd, &status) && status.st_ino == file->inode && status.st_dev == file->device;
    return same ? file : NULL;
}

static void note_name(const char *format, ...)
{
    char line[3 * PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0 || length >= (int)sizeof line) fatal("a path is too long");
    raw_append(names_fd, line, (size_t)length);
}

// Notes the bytes from `offset` on that a write of `length` bytes, or a truncation, takes away.
static void note_bytes(struct file *file, int readable, struct note note)
{
    uint64_t end = note.kind == TRUNCATE ? note.size : note.offset + note.length;
    if (end > note.size) end = note.size;
    note.old_bytes = end > note.offset ? end - note.offset : 0;
    char *bytes = malloc(sizeof note + note.old_bytes);
    if (!bytes) fatal("no memory");
    uint64_t count = 0;
    while (count < note.old_bytes) {
        long got = syscall(SYS_pread64, readable, bytes + sizeof note + count, note.old_bytes - count,
                           (off_t)(note.offset + count));
        if (got <= 0) fatal("cannot read what is overwritten");
        count += (uint64_t)got;
    }
    memcpy(bytes, &note, sizeof note);
    raw_append(file->undo, bytes, sizeof note + note.old_bytes);
    free(bytes);
}

static void note_change(struct file *file, enum kind kind, uint64_t offset, uint64_t length)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/file-%llu.data", side, (unsigned long long)file->serial);
    int readable = raw_open(path, O_RDONLY, 0);
    struct stat status;
    if (readable < 0 || fstat(readable, &status)) fatal(path);
    note_bytes(file, readable, (struct note){ kind, offset, length, (uint64_t)status.st_size, 0 });
    syscall(SYS_close, readable);
}

static int open_ours(const char *path, int flags, mode_t mode)
{
    pthread_mutex_lock(&lock);
    struct stat status;
    bool is_new = fstatat(AT_FDCWD, path, &status, 0) && (flags & O_CREAT);
    bool empties = !is_new && (flags & O_TRUNC);
    uint64_t serial = is_new ? next_serial++ : 0;
    if (is_new || empties) begin();
    if (is_new) note_name("create\t%llu\t%s\n", (unsigned long long)serial, path);
    struct file *file = is_new ? NULL : follow(path, 0);
    if (empties && file) note_change(file, TRUNCATE, 0, 0);
    int fd = raw_open(path, flags, mode);
    int kept = errno;
    if (fd >= 0 && is_new) file = follow(path, serial);
    if (fd >= 0 && fd < DESCRIPTORS_MAX) file_of[fd] = file ? (short)(file - files + 1) : 0;
    errno = kept;
    if (is_new || empties) finished(fd < 0);
    pthread_mutex_unlock(&lock);
    return fd;
}

static int any_open(int folder, const char *path, int flags, mode_t mode)
{
    char full[PATH_MAX];
    bool changes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC));
    bool unnamed = (flags & O_TMPFILE) == O_TMPFILE;
    if (changes && !unnamed && is_ours(folder, path, full)) return open_ours(full, flags, mode);
    int fd = (int)syscall(SYS_openat, folder, path, flags, mode);
    if (fd >= 0 && fd < DESCRIPTORS_MAX) file_of[fd] = 0;
    return fd;
}

static mode_t mode_argument(int flags, va_list arguments)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

#define OPEN(name)                                           \
    int name(const char *path, int flags, ...)               \
    {                                                        \
        va_list arguments;                                   \
        va_start(arguments, flags);                          \
        mode_t mode = mode_argument(flags, arguments);       \
        va_end(arguments);                                   \
        return any_open(AT_FDCWD, path, flags, mode);        \
    }
#define OPENAT(name)                                         \
    int name(int folder, const char *path, int flags, ...)   \
    {                                                        \
        va_list arguments;                                   \
        va_start(arguments, flags);                          \
        mode_t mode = mode_argument(flags, arguments);       \
        va_end(arguments);                                   \
        return any_open(folder, path, flags, mode);          \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int close(int fd)
{
    if (fd >= 0 && fd < DESCRIPTORS_MAX) file_of[fd] = 0;
    return (int)syscall(SYS_close, fd);
}

// Bytes of a write that the fault in force lets through.
static size_t allowed(size_t count)
{
    if (!control.write_errno) return count;
    uint64_t left = control.write_bytes_max > seen.write_bytes ? control.write_bytes_max - seen.write_bytes : 0;
    return left < count ? (size_t)left : count;
}

static ssize_t write_ours(struct file *file, int fd, const void *bytes, size_t count, off_t offset)
{
    begin();
    size_t let_through = allowed(count);
    if (let_through == 0 && count > 0) {
        errno = (int)control.write_errno;
        finished(true);
        return -1;
    }
    note_change(file, WRITE, (uint64_t)offset, let_through);
    bool ends_within = control.kill_at == seen.operations && control.kill_when == 1;
    size_t now = ends_within ? let_through / 2 : let_through;
    ssize_t done = syscall(SYS_pwrite64, fd, bytes, now, offset);
    maybe_end(1);
    if (done > 0) seen.write_bytes += (uint64_t)done;
    finished(done < 0);
    return done;
}

static ssize_t any_pwrite(int fd, const void *bytes, size_t count, off_t offset)
{
    pthread_mutex_lock(&lock);
    struct file *file = file_behind(fd);
    ssize_t done = file ? write_ours(file, fd, bytes, count, offset)
                        : syscall(SYS_pwrite64, fd, bytes, count, offset);
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset)
{
    return any_pwrite(fd, bytes, count, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset)
{
    return any_pwrite(fd, bytes, count, offset);
}

ssize_t write(int fd, const void *bytes, size_t count)
{
    if (fd < 0 || fd >= DESCRIPTORS_MAX || !file_of[fd]) return syscall(SYS_write, fd, bytes, count);
    off_t offset = lseek(fd, 0, SEEK_CUR);
    ssize_t done = any_pwrite(fd, bytes, count, offset);
    if (done > 0) lseek(fd, offset + done, SEEK_SET);
    return done;
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    if (fd < 0 || fd >= DESCRIPTORS_MAX || !file_of[fd]) return syscall(SYS_writev, fd, parts, count);
    // A write may always be short: the first part that is not empty.
    for (int index = 0; index < count; index++)
        if (parts[index].iov_len) return write(fd, parts[index].iov_base, parts[index].iov_len);
    return 0;
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    for (int index = 0; index < count; index++)
        if (parts[index].iov_len) return any_pwrite(fd, parts[index].iov_base, parts[index].iov_len, offset);
    return 0;
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    return pwritev(fd, parts, count, offset);
}

static int any_ftruncate(int fd, off_t size)
{
    pthread_mutex_lock(&lock);
    struct file *file = file_behind(fd);
    if (file) {
        begin();
        note_change(file, TRUNCATE, (uint64_t)size, 0);
    }
    int result = (int)syscall(SYS_ftruncate, fd, size);
    if (file) finished(result != 0);
    pthread_mutex_unlock(&lock);
    return result;
}

int ftruncate(int fd, off_t size)
{
    return any_ftruncate(fd, size);
}

int ftruncate64(int fd, off64_t size)
{
    return any_ftruncate(fd, size);
}

// Space that is promised in advance is refused for our files, as some file systems do.
static int any_fallocate(int fd, int mode, off_t offset, off_t length)
{
    pthread_mutex_lock(&lock);
    bool ours = file_behind(fd) != NULL;
    pthread_mutex_unlock(&lock);
    if (!ours) return (int)syscall(SYS_fallocate, fd, mode, offset, length);
    errno = EOPNOTSUPP;
    return -1;
}

int fallocate(int fd, int mode, off_t offset, off_t length)
{
    return any_fallocate(fd, mode, offset, length);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t length)
{
    return any_fallocate(fd, mode, offset, length);
}

int posix_fallocate(int fd, off_t offset, off_t length)
{
    return any_fallocate(fd, 0, offset, length) ? errno : 0;
}

int posix_fallocate64(int fd, off64_t offset, off64_t length)
{
    return posix_fallocate(fd, offset, length);
}

static bool folder_behind(int fd, char path[PATH_MAX])
{
    struct stat status;
    char link[64];
    if (control_fd < 0 || fstat(fd, &status) || !S_ISDIR(status.st_mode)) return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return false;
    path[length] = 0;
    return below(path);
}

static void sync_file(struct file *file, bool failed)
{
    struct stat status;
    if (!failed && !file->sync_failed) {
        syscall(SYS_ftruncate, file->undo, 0);
    } else if (!fstat(file->undo, &status) && status.st_size) {
        struct note note = { failed ? SYNC_FAILED : SYNCED, 0, 0, 0, 0 };
        raw_append(file->undo, &note, sizeof note);
        file->sync_failed = true;
    }
}

static int any_sync(int fd, long number)
{
    char folder[PATH_MAX];
    pthread_mutex_lock(&lock);
    struct file *file = file_behind(fd);
    bool is_folder = !file && folder_behind(fd, folder);
    if (!file && !is_folder) {
        pthread_mutex_unlock(&lock);
        return (int)syscall(number, fd);
    }
    begin();
    struct timespec time = { (time_t)(control.sync_micros / 1000000), (long)(control.sync_micros % 1000000) * 1000 };
    nanosleep(&time, NULL);
    bool failed = control.sync_errno != 0;
    if (file) sync_file(file, failed);
    else if (!failed) note_name("sync\t%s\n", folder);
    seen.syncs++;
    errno = (int)control.sync_errno;
    finished(failed);
    pthread_mutex_unlock(&lock);
    return failed ? -1 : 0;
}

int fsync(int fd)
{
    return any_sync(fd, SYS_fsync);
}

int fdatasync(int fd)
{
    return any_sync(fd, SYS_fdatasync);
}

static int any_rename(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    char from_full[PATH_MAX], to_full[PATH_MAX];
    if (!is_ours(from_folder, from, from_full) || !is_ours(to_folder, to, to_full))
        return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
    pthread_mutex_lock(&lock);
    begin();
    struct file *moved = follow(from_full, 0);
    struct file *replaced = follow(to_full, 0);
    int result = -1;
    if (!moved) {
        errno = ENOENT;
    } else {
        note_name("rename\t%llu\t%llu\t%s\t%s\n", (unsigned long long)moved->serial,
                  (unsigned long long)(replaced ? replaced->serial : 0), from_full, to_full);
        result = (int)syscall(SYS_renameat2, AT_FDCWD, from_full, AT_FDCWD, to_full, flags);
    }
    finished(result != 0);
    pthread_mutex_unlock(&lock);
    return result;
}

int rename(const char *from, const char *to)
{
    return any_rename(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    return any_rename(from_folder, from, to_folder, to, 0);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    return any_rename(from_folder, from, to_folder, to, flags);
}

static int any_unlink(int folder, const char *path, int flags)
{
    char full[PATH_MAX];
    if (!is_ours(folder, path, full)) return (int)syscall(SYS_unlinkat, folder, path, flags);
    pthread_mutex_lock(&lock);
    begin();
    struct file *file = flags & AT_REMOVEDIR ? NULL : follow(full, 0);
    if (flags & AT_REMOVEDIR) note_name("rmdir\t%s\n", full);
    else if (file) note_name("unlink\t%llu\t%s\n", (unsigned long long)file->serial, full);
    int result = (int)syscall(SYS_unlinkat, AT_FDCWD, full, flags);
    finished(result != 0);
    pthread_mutex_unlock(&lock);
    return result;
}

int unlink(const char *path)
{
    return any_unlink(AT_FDCWD, path, 0);
}

int unlinkat(int folder, const char *path, int flags)
{
    return any_unlink(folder, path, flags);
}

int rmdir(const char *path)
{
    return any_unlink(AT_FDCWD, path, AT_REMOVEDIR);
}

static int any_mkdir(int folder, const char *path, mode_t mode)
{
    char full[PATH_MAX];
    struct stat status;
    if (!is_ours(folder, path, full) || !fstatat(AT_FDCWD, full, &status, 0))
        return (int)syscall(SYS_mkdirat, folder, path, mode);
    pthread_mutex_lock(&lock);
    begin();
    note_name("mkdir\t%s\n", full);
    int result = (int)syscall(SYS_mkdirat, AT_FDCWD, full, mode);
    finished(result != 0);
    pthread_mutex_unlock(&lock);
    return result;
}

int mkdir(const char *path, mode_t mode)
{
    return any_mkdir(AT_FDCWD, path, mode);
}

int mkdirat(int folder, const char *path, mode_t mode)
{
    return any_mkdir(folder, path, mode);
}
