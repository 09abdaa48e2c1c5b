// These stories share a browser and a pair of services (see describeConsole).
import './stories/delivery-page.ts';
import './stories/formats.ts';
import './stories/set-up.ts';
import './stories/webhook-form.ts';
import './stories/webhook-page.ts';
import './stories/webhooks.ts';
