import { cpus, platform, release, totalmem } from 'node:os';

/** What it ran on, as far as it matters for the figures. */
export interface MachineFacts {
  cores: number;
  processor: string;
  memoryGigabytes: number;
  system: string;
  node: string;
}

export function machineFacts(): MachineFacts {
  const [first] = cpus();
  return {
    cores: cpus().length,
    processor: first?.model.trim() ?? 'unknown',
    memoryGigabytes: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${release()}`,
    node: process.versions.node,
  };
}
