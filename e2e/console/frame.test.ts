// These stories share a browser and a pair of services (see describeConsole).
import './stories/access.ts';
import './stories/every-page.ts';
import './stories/page-requests.ts';
import './stories/session.ts';
