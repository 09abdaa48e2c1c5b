// One browser and one pair of services for all: see describeConsole.
import './stories/access.ts';
import './stories/every-page.ts';
import './stories/page-requests.ts';
import './stories/session.ts';
