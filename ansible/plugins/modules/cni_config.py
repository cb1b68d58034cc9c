#!/usr/bin/python
# Copyright: the cnibench authors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: cni_config
short_description: Put one CNI configuration in place of those of a node
description:
  - Moves the configurations of a folder aside and writes one, or the reverse.
options:
  state:
    description: C(present) writes the configuration, C(absent) puts back what was there.
    type: str
    choices: [present, absent]
    default: present
  conflist:
    description: The configuration list; needed for C(present).
    type: dict
    default: {}
  config_dir:
    description: The folder that the container runtime reads.
    type: path
    required: true
  kept_dir:
    description: Where the configurations from before are kept.
    type: path
    required: true
author:
  - The cnibench authors
"""

EXAMPLES = r"""
- name: The bridge alone
  cnibench.testbed.cni_config:
    conflist:
      cniVersion: 1.0.0
      name: bridge
      plugins:
        - type: bridge
    config_dir: /etc/cni/net.d
    kept_dir: /var/lib/cnibench/cni
"""

RETURN = r"""
moved:
  description: The names of the files that were moved aside or back.
  type: list
  elements: str
  returned: always
"""

import json
import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.cnibench.testbed.plugins.module_utils.kept import make_folders, move, sync_file, sync_folder

OURS = "00-cnibench.conflist"


def configurations(folder):
    if not os.path.isdir(folder):
        return []
    return sorted(f for f in os.listdir(folder) if f != OURS and f.endswith((".conf", ".conflist", ".json")))


def main():
    module = AnsibleModule(
        argument_spec=dict(
            state=dict(type="str", choices=["present", "absent"], default="present"),
            conflist=dict(type="dict", default={}),
            config_dir=dict(type="path", required=True),
            kept_dir=dict(type="path", required=True),
        ),
        required_if=[("state", "present", ["conflist"])],
        supports_check_mode=True,
    )
    p = module.params
    ours = os.path.join(p["config_dir"], OURS)
    there = None
    if os.path.exists(ours):
        with open(ours) as f:
            there = f.read()
    if p["state"] == "present":
        if "plugins" not in p["conflist"]:
            module.fail_json(msg="conflist has no plugins: want a CNI configuration list")
        want = json.dumps(p["conflist"], indent=2, sort_keys=True) + "\n"
        moved, source, target = configurations(p["config_dir"]), p["config_dir"], p["kept_dir"]
    else:
        want = None
        moved, source, target = configurations(p["kept_dir"]), p["kept_dir"], p["config_dir"]
    if not module.check_mode:
        if moved or want:
            make_folders(target)
        for name in moved:
            move(os.path.join(source, name), target)
        if want is None and there is not None:
            os.unlink(ours)
            sync_folder(p["config_dir"])
        elif want is not None and want != there:
            make_folders(p["config_dir"])
            with open(ours + ".new", "w") as f:
                f.write(want)
            sync_file(ours + ".new")
            os.rename(ours + ".new", ours)
            sync_folder(p["config_dir"])
        if want is None and os.path.isdir(p["kept_dir"]) and not os.listdir(p["kept_dir"]):
            os.rmdir(p["kept_dir"])
            sync_folder(os.path.dirname(p["kept_dir"]))
    module.exit_json(changed=bool(moved) or want != there, moved=moved, diff={"before": there or "", "after": want or ""})


if __name__ == "__main__":
    main()
