import { notifications } from '@mantine/notifications';

const SHOWN_MS = 6_000;

/** Says that something was done. */
export function toastDone(message: string): void {
  notifications.show({ message, color: 'green', autoClose: SHOWN_MS, withBorder: true, role: 'status' });
}

/** Says that something was not done; stays until it is closed. */
export function toastProblem(title: string, message: string): void {
  notifications.show({ title, message, color: 'red', autoClose: false, withBorder: true, role: 'alert' });
}
