// Runs before each test file of the project on the system's PostgreSQL. Each file has its own copy of the environment.
process.env.TEST_POSTGRES_URL = process.env.TEST_SYSTEM_POSTGRES_URL;
