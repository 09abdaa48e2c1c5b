import classes from './product-mark.module.css';

/** The name of the product, with its sign: a hook. */
export function ProductMark() {
  return (
    <span className={classes.mark}>
      <svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
        <rect width="32" height="32" rx="7" fill="#1971c2" />
        <path
          d="M20 7v11a5 5 0 1 1-10 0v-2"
          fill="none"
          stroke="#fff"
          strokeWidth="3"
          strokeLinecap="round"
        />
        <path
          d="M6.5 18.5 10 15l3.5 3.5"
          fill="none"
          stroke="#fff"
          strokeWidth="3"
          strokeLinecap="round"
          strokeLinejoin="round"
        />
      </svg>
      Runhook
    </span>
  );
}
