# Copyright: the cnibench authors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
name: records
type: stdout
short_description: One line of JSON for each result of a task
description:
  - This is how cnibench reads what became of a play; people are better served by others.
author:
  - The cnibench authors
"""

import json

from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "cnibench.testbed.records"

    def tell(self, event, result, **more):
        got = result._result
        line = {
            "event": event,
            "host": result._host.get_name(),
            "task": result._task.get_name(),
            "role": result._task._role.get_name() if result._task._role else "",
            "changed": bool(got.get("changed")),
        }
        line.update(more)
        for key in ("msg", "settings", "values", "restored", "pids", "stdout", "stderr", "module_stderr", "rc", "ansible_facts"):
            if key in got and not (key == "ansible_facts" and event != "ok"):
                line[key] = got[key]
        self._display.display(json.dumps(line, default=str))

    def v2_runner_on_ok(self, result):
        self.tell("ok", result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self.tell("failed", result, ignored=ignore_errors)

    def v2_runner_on_unreachable(self, result):
        self.tell("unreachable", result)

    def v2_runner_on_skipped(self, result):
        self.tell("skipped", result)
