import type { Attack } from './attack.ts';
import { fuzz } from './fuzz/fuzz.ts';
import { hostileEndpoints } from './hostile-endpoints.ts';
import { informationLeaks } from './information-leaks.ts';

/** Attacks run in this order, each for the same time. */
export const ATTACKS: readonly Attack[] = [fuzz, hostileEndpoints, informationLeaks];
