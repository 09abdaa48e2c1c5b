// One browser and one pair of services for all: see describeConsole.
import './stories/delivery-page.ts';
import './stories/set-up.ts';
import './stories/webhook-form.ts';
import './stories/webhook-page.ts';
import './stories/webhooks.ts';
