// One browser and one pair of services for all: see describeConsole.
import './stories/activity.ts';
import './stories/incidents.ts';
import './stories/recent-deliveries.ts';
