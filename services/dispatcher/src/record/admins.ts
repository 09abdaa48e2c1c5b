/** SQL for the admins of the accounts of the subscriptions in `changed`, on any plan. */
export const ADMINS = `
  JOIN memberships m ON m.account_id = changed.account_id AND m.permission_sets && '{account_admin,admin}'
  JOIN users u ON u.id = m.user_id`;
