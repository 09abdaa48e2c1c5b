/** Up to this width a page shows cards instead of tables, and the navigation is a drawer. */
export const PHONE = '(max-width: 48em)';
