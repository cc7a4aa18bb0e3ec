"""A Slurm cluster of one node, this machine, for the duration of a test: munged, slurmctld and slurmd of a
distribution's packages, started without systemd from a folder of their own. Needs root, which slurmd wants."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

from calls import call
from hangs import HANG_S, wait_for

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue")
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
CONFIGURATION = """\
ClusterName=xcorr
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={root}/munge/socket
CredType=cred/munge
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
KillWait=2
MinJobAge=3600
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=test Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def why_not() -> str:
    """Why no cluster can be started here; empty when one can."""
    for name in PROGRAMS:
        if shutil.which(name, path=PATH) is None:
            return f"{name} is not installed (Debian: slurm-wlm, munge)"
    return "" if os.geteuid() == 0 else "slurmd needs root"


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Cluster:
    """The daemons; `env` is what its commands need. A context manager."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.env = {**os.environ, "PATH": PATH, "SLURM_CONF": str(root / "slurm.conf")}
        self._daemons: list[subprocess.Popen] = []

    def __enter__(self) -> Cluster:
        for folder in ("munge", "state", "spool"):
            (self.root / folder).mkdir(parents=True)
            (self.root / folder).chmod(0o755)
        key = self.root / "munge/key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        host = socket.gethostname().split(".")[0]
        text = CONFIGURATION.format(host=host, root=self.root, controller=_free_port(), daemon=_free_port())
        (self.root / "slurm.conf").write_text(text)
        munge = self.root / "munge"
        try:
            self._start(
                "munged",
                "--foreground",
                "--force",
                f"--key-file={key}",
                f"--socket={munge}/socket",
                f"--pid-file={munge}/pid",
                f"--log-file={munge}/log",
                f"--seed-file={munge}/seed",
            )
            self.wait(lambda: (munge / "socket").exists(), "munged")
            self._start("slurmctld", "-D", "-f", self.root / "slurm.conf")
            self._start("slurmd", "-D", "-f", self.root / "slurm.conf", "-N", host)
            self.wait(lambda: "idle" in self.call("sinfo", "--noheader", "--format=%t"), "the node to be idle")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel what runs, then end our own daemons, last started first."""
        if len(self._daemons) > 1:
            self.call("scancel", "--full", "--user=root")
            wait_for(lambda: not self.call("squeue", "--noheader"), "jobs to end", self.logs)
        for daemon in reversed(self._daemons):
            daemon.terminate()
            try:
                daemon.wait(HANG_S)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def _start(self, *words: object) -> None:
        with open(self.root / f"{words[0]}.out", "wb") as log:
            self._daemons.append(
                subprocess.Popen([str(word) for word in words], env=self.env, stdout=log, stderr=log, cwd=self.root)
            )

    def call(self, *words: object) -> str:
        """A command's standard output; empty when it fails."""
        return call(*words, env=self.env).stdout

    def state(self, job: str) -> str:
        """State of a job or of one task of an array, such as RUNNING or COMPLETED."""
        told = self.call("scontrol", "--oneliner", "show", "job", job)
        return told.partition("JobState=")[2].partition(" ")[0]

    def wait(self, ready: Callable[[], bool], what: str) -> None:
        """Until `ready()`; the AssertionError of a hang has the ends of the logs."""
        wait_for(ready, what, self.logs)

    def logs(self) -> str:
        """The ends of the daemons' logs."""
        files = [*self.root.glob("*.out"), *self.root.glob("*.log"), self.root / "munge/log"]
        return "\n".join(f"--- {one.name}\n{one.read_text(errors='replace')[-1500:]}" for one in files if one.exists())
