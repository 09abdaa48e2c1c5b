// One browser and one pair of services for all: see describeConsole. The first two have the shorter logs.
import './stories/incidents.ts';
import './stories/recent-deliveries.ts';
import './stories/activity.ts';
