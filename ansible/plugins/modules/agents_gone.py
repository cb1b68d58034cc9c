#!/usr/bin/python
# Copyright: the cnibench authors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: agents_gone
short_description: End the agents of cnibench that a killed run left
description:
  - Ends each process whose program is the file cnibench of a folder, and no other; an agent ends what it started itself.
options:
  dir:
    description: The folder of the agent's program.
    type: path
    required: true
author:
  - The cnibench authors
"""

EXAMPLES = r"""
- name: No agent that still runs
  cnibench.testbed.agents_gone:
    dir: /var/lib/cnibench/agent
"""

RETURN = r"""
pids:
  description: The processes that were ended.
  type: list
  elements: int
  returned: always
"""

import os
import signal
import time

from ansible.module_utils.basic import AnsibleModule


def agents(folder):
    found = []
    for pid in os.listdir("/proc"):
        if not pid.isdigit():
            continue
        try:
            program = os.readlink("/proc/%s/exe" % pid)
        except OSError:  # it has ended, or is another user's
            continue
        # A program that was replaced while it ran has a mark behind its name.
        if program in (os.path.join(folder, "cnibench"), os.path.join(folder, "cnibench") + " (deleted)"):
            found.append(int(pid))
    return sorted(found)


def end(pids, how):
    for pid in pids:
        try:
            os.kill(pid, how)
        except OSError:  # it has ended
            pass


def main():
    module = AnsibleModule(argument_spec=dict(dir=dict(type="path", required=True)), supports_check_mode=True)
    folder = os.path.realpath(module.params["dir"])
    pids = agents(folder)
    if pids and not module.check_mode:
        end(pids, signal.SIGTERM)
        deadline = time.time() + 5
        while agents(folder) and time.time() < deadline:
            time.sleep(0.05)
        end(agents(folder), signal.SIGKILL)
    module.exit_json(changed=bool(pids), pids=pids)


if __name__ == "__main__":
    main()
