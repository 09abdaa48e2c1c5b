export { createManagement, type Management } from './app.ts';
export { readSettings, type Settings } from './settings.ts';
