import type { Attack } from './attack.ts';
import { fuzz } from './fuzz/fuzz.ts';
import { hostileEndpoints } from './hostile-endpoints.ts';

/** In the order in which they are done; each is given the same time. */
export const ATTACKS: readonly Attack[] = [fuzz, hostileEndpoints];
