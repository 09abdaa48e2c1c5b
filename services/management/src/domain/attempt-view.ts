/** One attempt as the database has it. Signature values were masked before they were stored. */
export interface AttemptRow {
  number: number;
  trigger: 'automatic' | 'manual';
  started_at: string;
  duration_ms: number;
  http_status_code: number;
  error_code: string | null;
  error_message: string | null;
  request_headers: Record<string, string>;
  response_headers: Record<string, string> | null;
  response_body: string | null;
  response_truncated: boolean;
}

/** One attempt as the log answers it (DESIGN, section 7, "Deliveries"). */
export interface AttemptView extends Omit<AttemptRow, 'http_status_code' | 'error_code' | 'error_message'> {
  http_status_code: string;
  error: { code: string; message: string } | null;
}

export function attemptView(row: AttemptRow): AttemptView {
  return {
    number: row.number,
    trigger: row.trigger,
    started_at: row.started_at,
    duration_ms: row.duration_ms,
    http_status_code: String(row.http_status_code),
    error: row.error_code === null ? null : { code: row.error_code, message: row.error_message ?? '' },
    request_headers: row.request_headers,
    response_headers: row.response_headers,
    response_body: row.response_body,
    response_truncated: row.response_truncated,
  };
}
