# Copyright: the cnibench authors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The values that a host had before it was changed, kept on the host."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import errno
import json
import os
import shutil


def boot_id():
    with open("/proc/sys/kernel/random/boot_id") as f:
        return f.read().strip()


def sync_folder(folder):
    """Returns when the names in a folder are on the disk: a file that was made,
    renamed or removed is not, before that."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError as e:
        if e.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems have no such sync
            raise
    finally:
        os.close(fd)


def make_folders(folder):
    """Makes a folder with those above it, each on the disk."""
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    make_folders(above)
    os.mkdir(folder, 0o755)
    sync_folder(above)


def sync_file(path):
    """Returns when what a file contains is on the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def move(path, folder):
    """Moves a file into a folder. A loss of power leaves it in one of the two folders, or
    in both."""
    there = os.path.join(folder, os.path.basename(path))
    temporary = there + ".new"
    if os.path.lexists(temporary):
        os.unlink(temporary)
    try:
        os.link(path, temporary)
    except OSError as e:
        if e.errno not in (errno.EXDEV, errno.EPERM):  # another file system, or one without links
            raise
        shutil.copy2(path, temporary)
    sync_file(temporary)
    os.rename(temporary, there)
    if os.path.lexists(temporary):  # both were names of one file, so that nothing was renamed
        os.unlink(temporary)
    sync_folder(folder)
    os.unlink(path)
    sync_folder(os.path.dirname(path))


def outlives_a_reboot(name):
    """Whether a setting is on a disk. Any other is as it was after a reboot."""
    return name == "tuned" or name.startswith("file /etc/")


def sync_setting(name):
    """Returns when a setting that outlives a reboot is on the disk as it now reads.
    Its old value is needed until then, whoever wrote it."""
    if not name.startswith("file /etc/"):
        return
    path = name[len("file "):]
    if not os.path.exists(path):
        return
    sync_file(path)
    sync_folder(os.path.dirname(path))


class Kept(object):
    """A file of old values by the settings' names. It is written and synced
    before a setting is changed, and removed with its last entry."""

    def __init__(self, path):
        self.path = path
        self.old = {}
        self.rebooted = False
        if os.path.exists(path):
            with open(path) as f:
                kept = json.load(f)
            self.old = kept["old"]
            self.rebooted = kept["boot_id"] != boot_id()
        if self.rebooted:
            # What is not written to a disk is as it was before the change.
            self.old = dict((k, v) for k, v in self.old.items() if outlives_a_reboot(k))

    def save(self):
        folder = os.path.dirname(os.path.abspath(self.path))
        if not self.old:
            if os.path.exists(self.path):
                os.unlink(self.path)
                sync_folder(folder)
            return
        make_folders(folder)
        temporary = self.temporary()
        try:
            with open(temporary, "w") as f:
                json.dump({"schema": 1, "boot_id": boot_id(), "old": self.old}, f, indent=1, sort_keys=True)
                f.flush()
                os.fsync(f.fileno())
        except (OSError, IOError):
            if os.path.isfile(temporary):
                os.unlink(temporary)
            raise
        os.rename(temporary, self.path)
        sync_folder(folder)

    def temporary(self):
        return self.path + ".new"

    def discard(self):
        """Removes what a loss of power left of a file that was being written: nothing
        was changed before it had its name."""
        if os.path.isfile(self.temporary()):
            os.unlink(self.temporary())
            sync_folder(os.path.dirname(os.path.abspath(self.path)))

    def tidy(self):
        """Forgets what was put back. On a full disk it is not forgotten, which harms
        nobody: the file's values are those from before all the same."""
        try:
            self.save()
        except (OSError, IOError) as e:
            if e.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
