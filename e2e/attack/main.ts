import { accountFloods } from './account-floods.ts';
import { artifacts } from './artifacts.ts';
import type { Attack } from './attack.ts';
import { fuzz } from './fuzz/fuzz.ts';
import { hostileEndpoints } from './hostile-endpoints.ts';
import { informationLeaks } from './information-leaks.ts';
import { runIds } from './run-ids.ts';
import { signInFlood } from './sign-in-flood.ts';
import { surfaces } from './surfaces.ts';

/** Attacks run in this order, each for the same time. */
export const ATTACKS: readonly Attack[] = [
  fuzz,
  hostileEndpoints,
  accountFloods,
  runIds,
  signInFlood,
  surfaces,
  informationLeaks,
  artifacts,
];
