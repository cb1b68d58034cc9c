#!/usr/bin/python
# Copyright: the cnibench authors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: host_settings
short_description: Change settings of a host so that they can be put back
description:
  - Changes sysctls, offloads, rings and MTU of a running host, and the profile of tuned.
  - Each value is kept on the host before it is changed, and read back after.
  - A setting that does not take is no failure. The result says which, and why.
  - Nothing survives a reboot but the profile of tuned, which is put back by C(restored) as well.
options:
  state:
    description: C(applied) gives the host these settings and puts others back; C(restored) puts all back.
    type: str
    choices: [applied, restored]
    default: applied
  sysctls:
    description: Values by name.
    type: dict
    default: {}
  devices:
    description: The devices that offloads, rings and MTU are for; empty means that of the default route.
    type: list
    elements: str
    default: []
  offloads:
    description: Booleans by the names of ethtool -K.
    type: dict
    default: {}
  rings:
    description: Sizes in packets of the rings rx and tx.
    type: dict
    default: {}
  mtu:
    description: The MTU in bytes; 0 leaves it.
    type: int
    default: 0
  tuned:
    description: The profile of tuned; empty leaves tuned alone.
    type: str
    default: ""
  watch:
    description: Names of further settings whose values are wanted, as sysctl net.ipv4.tcp_sack or offload gro.
    type: list
    elements: str
    default: []
  state_file:
    description: Where the values from before are kept.
    type: path
    default: /var/lib/cnibench/host_settings.json
author:
  - The cnibench authors
"""

EXAMPLES = r"""
- name: Sixteen MiB of socket buffer
  cnibench.testbed.host_settings:
    sysctls:
      net.core.rmem_max: "16777216"

- name: All as it was
  cnibench.testbed.host_settings:
    state: restored
"""

RETURN = r"""
settings:
  description: What became of each setting that was asked for.
  type: list
  elements: dict
  returned: always
values:
  description: The values in force, by name, of all that was asked for or watched.
  type: dict
  returned: always
restored:
  description: The names of settings that were put back.
  type: list
  elements: str
  returned: always
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.cnibench.testbed.plugins.module_utils import settings, tuned
from ansible_collections.cnibench.testbed.plugins.module_utils.kept import Kept, sync_setting


def read(name):
    return tuned.active() if name == "tuned" else settings.read(name)


def refused(name, value):
    return tuned.refused(value) if name == "tuned" else settings.refused(name, value)


def write(name, value):
    """Writes a setting and returns what else went wrong."""
    if name == "tuned":
        return tuned.apply(value)
    settings.write(name, value)
    return []


def wanted(params):
    """The settings asked for, as (name, value) in the order of their making."""
    all_of = [("sysctl " + k, " ".join(str(v).split())) for k, v in sorted(params["sysctls"].items())]
    for device in params["devices"]:
        if params["mtu"]:
            all_of.append(("mtu " + device, str(params["mtu"])))
        for k, v in sorted(params["offloads"].items()):
            all_of.append(("offload %s %s" % (device, k), "on" if v else "off"))
        for k, v in sorted(params["rings"].items()):
            all_of.append(("ring %s %s" % (device, k), str(v)))
    if params["tuned"]:
        all_of.append(("tuned", params["tuned"]))
    return all_of


def touched(name, value):
    """All that making a setting changes: tuned's profiles change many."""
    if name != "tuned":
        return [name]
    return ["sysctl " + s for s in sorted(tuned.sysctls(value))] + ["file " + f for f in tuned.files(value)] + [name]


def put_back(module, kept, names):
    """Writes old values back; those that do not take stay kept."""
    done, failed = [], []
    for name in names:
        old = kept.old[name]
        if read(name) != old:
            if not module.check_mode:
                try:
                    write(name, old)
                except settings.NotTaken as e:
                    failed.append("%s stays %s, was %s: %s" % (name, read(name), old, e))
                    continue
            done.append(name)
        if not module.check_mode:
            sync_setting(name)  # also where tuned wrote it
            del kept.old[name]
    if names and not module.check_mode:
        kept.tidy()
    if failed:
        module.fail_json(msg="not put back: " + "; ".join(failed), restored=done)
    return done


def keep(module, kept, asked):
    """Keeps the values of now of all that will change, before anything does."""
    names = []
    for name, value in asked:
        if read(name) != value and refused(name, value) is None:
            names += touched(name, value)
    new = dict((n, read(n)) for n in names if n not in kept.old)
    if not new or module.check_mode:
        return
    kept.old.update((n, v) for n, v in new.items() if v is not None)
    try:
        kept.save()
    except (OSError, IOError) as e:
        module.fail_json(msg="nothing was changed, as the values of now cannot be kept in %s (make room there): %s" % (kept.path, e.strerror))


def make(module, name, value):
    """Makes one setting and tells what became of it."""
    before = read(name)
    out = {"name": name, "asked": value, "before": before, "value": before, "reason": ""}
    if before == value:
        return out
    why = refused(name, value)
    if why is None and module.check_mode:
        out["value"] = value
        return out
    if why is None:
        try:
            why = "; ".join(write(name, value))
        except settings.NotTaken as e:
            why = str(e)
        out["value"] = read(name)
    out["reason"] = why or ""
    return out


def made_by_tuned(profile):
    """What became of each sysctl that tuned's profile asks for."""
    out = []
    for name, asked in sorted(tuned.sysctls(profile).items()):
        value = read("sysctl " + name)
        reason = ""
        if asked is None:
            asked = value  # tuned computes it
        elif value is None:
            reason = "this kernel, or this network namespace, has no such setting"
        elif asked.startswith(">"):  # at least
            asked = asked[1:]
            reason = "" if int(value) >= int(asked) else "tuned did not change it"
        elif value != asked:
            reason = "tuned did not change it"
        out.append({"name": "sysctl " + name, "asked": asked or "", "before": None, "value": value, "reason": reason})
    return out


def watched(module, made):
    values = dict((s["name"], s["value"]) for s in made)
    for name in module.params["watch"]:
        kind = name.split()
        if not kind or kind[0] not in ("sysctl", "offload", "ring", "mtu", "file", "tuned"):
            module.fail_json(msg="watch: no setting is called %r" % name)
        names = [name]
        if kind[0] in ("offload", "ring", "mtu") and len(kind) < 3 and name != "mtu":
            names = ["%s %s %s" % (kind[0], device, kind[1]) for device in module.params["devices"]]
        values.update((n, read(n)) for n in names if n not in values)
    return dict((k, v) for k, v in values.items() if v is not None)


def main():
    module = AnsibleModule(
        argument_spec=dict(
            state=dict(type="str", choices=["applied", "restored"], default="applied"),
            sysctls=dict(type="dict", default={}),
            devices=dict(type="list", elements="str", default=[]),
            offloads=dict(type="dict", default={}),
            rings=dict(type="dict", default={}),
            mtu=dict(type="int", default=0),
            tuned=dict(type="str", default=""),
            watch=dict(type="list", elements="str", default=[]),
            state_file=dict(type="path", default="/var/lib/cnibench/host_settings.json"),
        ),
        supports_check_mode=True,
    )
    try:
        kept = Kept(module.params["state_file"])
    except (OSError, IOError, ValueError, KeyError) as e:
        module.fail_json(msg="the values from before cannot be read: %s: %s" % (module.params["state_file"], e))
    if not module.check_mode:
        kept.discard()
    if kept.rebooted and not module.check_mode:
        kept.tidy()
    if not module.params["devices"]:
        module.params["devices"] = settings.default_devices()
    asked = wanted(module.params) if module.params["state"] == "applied" else []
    stay = set()
    for name, value in asked:
        stay.update(touched(name, value))
    # tuned first: what it put back itself needs no more writing.
    back = sorted((n for n in kept.old if n not in stay), key=lambda n: (n != "tuned", n))
    restored = put_back(module, kept, back)
    keep(module, kept, asked)
    made = [make(module, name, value) for name, value in asked]
    changed = [s for s in made if s["before"] != s["value"]]
    if module.params["tuned"] and asked and not module.check_mode and tuned.active() == module.params["tuned"]:
        made += made_by_tuned(module.params["tuned"])
    if not asked and not module.check_mode:
        folder = os.path.dirname(kept.path)
        if os.path.isdir(folder) and not os.listdir(folder) and not os.path.ismount(folder):
            os.rmdir(folder)
    module.exit_json(
        changed=bool(changed or restored),
        settings=made,
        restored=restored,
        values=watched(module, made),
        diff={
            "before": "".join("%s = %s\n" % (s["name"], s["before"]) for s in changed),
            "after": "".join("%s = %s\n" % (s["name"], s["value"]) for s in changed),
        },
    )


if __name__ == "__main__":
    main()
