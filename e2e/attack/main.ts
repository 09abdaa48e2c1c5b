import type { Attack } from './attack.ts';
import { fuzz } from './fuzz/fuzz.ts';
import { hostileEndpoints } from './hostile-endpoints.ts';
import { signInFlood } from './sign-in-flood.ts';

/** Attacks run in this order, each for the same time. */
export const ATTACKS: readonly Attack[] = [fuzz, hostileEndpoints, signInFlood];
