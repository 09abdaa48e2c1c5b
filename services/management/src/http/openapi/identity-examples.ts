import type { AccountView } from '../../domain/account-view.ts';
import type { SessionView } from '../../domain/session-view.ts';
import type { Profile } from '../routes/profile.ts';

/** Ada, who belongs to account 1 of the other examples. */

export const ACCOUNT_EXAMPLE: AccountView = {
  id: 1,
  identifier: 'act_3MMmRJEV9dZkhAlajvBokYDUOPh',
  name: 'Acme',
  plan: 'enterprise',
  deployment: 'multi_tenant',
  created_at: '2026-01-15T08:00:00Z',
};

const ada = { user_id: 7, email: 'ada@example.com', name: 'Ada' };
/** Nobody's: its checksum is wrong. */
const api_key = 'rhu_EXAMPLEexampleEXAMPLEexampleEXAMPLEexampleEXAMPLE';

export const SIGN_IN_EXAMPLE = { email: ada.email, password: 'correct horse battery staple' };
export const ROTATED_EXAMPLE = { user_id: ada.user_id, api_key };
export const PROFILE_EXAMPLE: Profile = { ...ada, api_key };

export const SESSION_EXAMPLE: SessionView = {
  ...ada,
  accounts: [
    {
      ...ACCOUNT_EXAMPLE,
      license: 'developer',
      permission_sets: ['account_admin'],
      webhooks_unavailable: null,
      may_write_webhooks: true,
    },
  ],
  expires_at: '2026-11-21T10:00:00Z',
};
