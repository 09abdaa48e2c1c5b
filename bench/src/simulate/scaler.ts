import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

interface Policy {
  type: 'Pods' | 'Percent';
  value: number;
  periodSeconds: number;
}

interface Rules {
  stabilizationWindowSeconds: number;
  policies: Policy[];
}

/** The settings of the manifests for the number of dispatchers. */
export interface ScalerSettings {
  min: number;
  max: number;
  ageSeconds: number;
  /** Queued jobs per pod. */
  jobs: number;
  cpuPercent: number;
  behavior: { scaleUp: Rules; scaleDown: Rules };
}

const PARTS = new URL('../../../k8s/parts/', import.meta.url);

/** Reads k8s/parts/keda. */
export function kedaSettings(): ScalerSettings {
  const { spec } = parse(readFileSync(new URL('keda/scaled-object.yaml', PARTS), 'utf8'));
  const triggers: { name?: string; type: string; metadata: Record<string, string> }[] = spec.triggers;
  const target = (find: (trigger: { name?: string; type: string }) => boolean, field: string) =>
    Number(triggers.find(find)?.metadata[field]);
  return {
    min: spec.minReplicaCount,
    max: spec.maxReplicaCount,
    ageSeconds: target(({ name }) => name === 'age', 'threshold'),
    jobs: target(({ name }) => name === 'depth', 'threshold'),
    cpuPercent: target(({ type }) => type === 'cpu', 'value'),
    behavior: spec.advanced.horizontalPodAutoscalerConfig.behavior,
  };
}

/** Reads k8s/parts/hpa. */
export function hpaSettings(): ScalerSettings {
  const { spec } = parse(readFileSync(new URL('hpa/horizontal-pod-autoscaler.yaml', PARTS), 'utf8'));
  const [age, depth, cpu] = spec.metrics;
  return {
    min: spec.minReplicas,
    max: spec.maxReplicas,
    ageSeconds: Number(age.external.target.value),
    jobs: Number(depth.external.target.averageValue),
    cpuPercent: cpu.resource.target.averageUtilization,
    behavior: spec.behavior,
  };
}

/** The metrics as the scaler sees them, with a delay. */
export interface Metrics {
  oldestSeconds: number;
  jobs: number;
  /** Mean CPU of the ready pods relative to their requests. */
  cpuPercent: number;
}

const TOLERANCE = 0.1;

/** The formula of the HorizontalPodAutoscaler (autoscaling/v2), which KEDA uses as well. */
export class Scaler {
  readonly #settings: ScalerSettings;
  #recommendations: { atSeconds: number; pods: number }[] = [];
  #changes: { atSeconds: number; by: number }[] = [];

  constructor(settings: ScalerSettings) {
    this.#settings = settings;
  }

  /** @param pods the requested number of pods, including those that are starting */
  decide(nowSeconds: number, pods: number, ready: number, metrics: Metrics): number {
    const { min, max } = this.#settings;
    const desired = Math.min(max, Math.max(min, this.#desiredPods(pods, ready, metrics)));
    const next = Math.min(
      max,
      Math.max(min, this.#limitChange(nowSeconds, pods, this.#stabilize(nowSeconds, pods, desired))),
    );
    if (next !== pods) this.#changes.push({ atSeconds: nowSeconds, by: next - pods });
    return next;
  }

  #desiredPods(pods: number, ready: number, { oldestSeconds, jobs, cpuPercent }: Metrics): number {
    const { ageSeconds, jobs: jobsEach, cpuPercent: cpuTarget } = this.#settings;
    const byAge = scalePods(oldestSeconds / ageSeconds, ready, pods);
    const depth = jobs / (jobsEach * pods);
    const byDepth = Math.abs(depth - 1) <= TOLERANCE ? pods : Math.ceil(jobs / jobsEach);
    const cpu = cpuPercent / cpuTarget;
    // Starting pods count as idle before more are requested.
    const byCpu = cpu > 1 && (cpu * ready) / pods <= 1 ? pods : scalePods(cpu, ready, pods);
    return Math.max(byAge, byDepth, byCpu);
  }

  /** Returns the lowest number desired within the window if that means scaling up, or the highest for scaling down. */
  #stabilize(nowSeconds: number, pods: number, desired: number): number {
    const { scaleUp, scaleDown } = this.#settings.behavior;
    const longest = Math.max(scaleUp.stabilizationWindowSeconds, scaleDown.stabilizationWindowSeconds);
    this.#recommendations = this.#recommendations.filter(({ atSeconds }) => atSeconds > nowSeconds - longest);
    this.#recommendations.push({ atSeconds: nowSeconds, pods: desired });
    const within = (seconds: number) =>
      this.#recommendations
        .filter(({ atSeconds }) => atSeconds >= nowSeconds - seconds)
        .map((recommendation) => recommendation.pods);
    const up = Math.min(...within(scaleUp.stabilizationWindowSeconds));
    const down = Math.max(...within(scaleDown.stabilizationWindowSeconds));
    return pods < up ? up : Math.min(pods, down);
  }

  #limitChange(nowSeconds: number, pods: number, wanted: number): number {
    const { scaleUp, scaleDown } = this.#settings.behavior;
    const changed = (seconds: number, sign: 1 | -1) =>
      this.#changes
        .filter(({ atSeconds, by }) => atSeconds > nowSeconds - seconds && Math.sign(by) === sign)
        .reduce((sum, { by }) => sum + by, 0);
    if (wanted > pods) {
      const maximum = scaleUp.policies.map(({ type, value, periodSeconds }) => {
        const start = pods - changed(periodSeconds, 1);
        return type === 'Pods' ? start + value : Math.ceil(start * (1 + value / 100));
      });
      return Math.min(wanted, Math.max(pods, ...maximum));
    }
    if (wanted === pods) return pods;
    const minimum = scaleDown.policies.map(({ type, value, periodSeconds }) => {
      const start = pods - changed(periodSeconds, -1);
      return type === 'Pods' ? start - value : Math.floor(start * (1 - value / 100));
    });
    return Math.max(wanted, Math.min(pods, ...minimum));
  }
}

function scalePods(ratio: number, ready: number, pods: number): number {
  return Math.abs(ratio - 1) <= TOLERANCE ? pods : Math.ceil(ratio * ready);
}
