import { readdirSync, readFileSync } from 'node:fs';

/** Unit of CPU time on Linux: hundredths of a second, on every architecture that Node supports. */
const TICK_MS = 10;

/** CPU time so far in milliseconds, per named group of processes and for the whole machine. */
export interface CpuReading {
  groups: Record<string, number>;
  machineMs: number;
}

export interface CpuUse {
  groups: Record<string, number>;
  /** CPU time of the machine that no group of processes used. */
  foreignMs: number;
}

interface ProcessStat {
  pid: number;
  parentPid: number;
  /** Includes children that have ended. */
  cpuMs: number;
}

/** Returns null on systems without /proc. Each pid includes its descendants; `bench` is this process. */
export function readCpu(pidsByGroup: Record<string, readonly number[]>): CpuReading | null {
  const stats = readProcesses();
  if (stats === null) return null;
  const machineMs = machineMsOf(readFileSync('/proc/stat', 'utf8'));
  const groups = Object.fromEntries(
    Object.entries(pidsByGroup).map(([name, pids]) => {
      const familyPids = listProcessTree(stats, pids);
      return [name, stats.reduce((sum, stat) => sum + (familyPids.has(stat.pid) ? stat.cpuMs : 0), 0)];
    }),
  );
  const { user, system } = process.cpuUsage();
  return { groups: { ...groups, bench: (user + system) / 1_000 }, machineMs };
}

export function cpuBetween(before: CpuReading | null, after: CpuReading | null): CpuUse | null {
  if (before === null || after === null) return null;
  const groups = Object.fromEntries(
    Object.entries(after.groups).map(([name, ms]) => [name, Math.max(0, ms - (before.groups[name] ?? 0))]),
  );
  const ownMs = Object.values(groups).reduce((sum, ms) => sum + ms, 0);
  return { groups, foreignMs: Math.max(0, after.machineMs - before.machineMs - ownMs) };
}

/** Parses a line of /proc/<pid>/stat. The command, in parentheses, may contain any character. */
export function parseProcessStat(text: string): ProcessStat {
  const pid = Number.parseInt(text, 10);
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const ticks = [11, 12, 13, 14].reduce((sum, field) => sum + Number(fields[field]), 0);
  return { pid, parentPid: Number(fields[1]), cpuMs: ticks * TICK_MS };
}

/** Parses the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. */
export function machineMsOf(text: string): number {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = (text.split('\n')[0] ?? '')
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softirq) * TICK_MS;
}

function readProcesses(): ProcessStat[] | null {
  let names: string[];
  try {
    names = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    return null;
  }
  return names.flatMap((name) => {
    try {
      return [parseProcessStat(readFileSync(`/proc/${name}/stat`, 'utf8'))];
    } catch {
      return [];
    }
  });
}

function listProcessTree(stats: readonly ProcessStat[], roots: readonly number[]): Set<number> {
  const familyPids = new Set(roots);
  for (let hasGrown = true; hasGrown; ) {
    hasGrown = false;
    for (const { pid, parentPid } of stats) {
      if (familyPids.has(pid) || !familyPids.has(parentPid)) continue;
      familyPids.add(pid);
      hasGrown = true;
    }
  }
  return familyPids;
}
