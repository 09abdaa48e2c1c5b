// These stories share a browser and a pair of services (see describeConsole). The first two have the shorter logs.
import './stories/incidents.ts';
import './stories/recent-deliveries.ts';
import './stories/activity.ts';
