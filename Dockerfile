# Builds one image for each service:
#   docker build --target management --tag runhook/management .
#   docker build --target dispatcher --tag runhook/dispatcher .
#   docker build --target migrate    --tag runhook/migrate .

# The newest Node that the matrix has tested (scripts/prove/tested-versions.json).
FROM node:26.10.0-trixie-slim AS base

FROM base AS build
WORKDIR /src
# Prevents prompts of pnpm, which has no terminal here.
ENV CI=true
# Scripts of packages do not run, because none is needed and none may change the build.
RUN npm install --global --ignore-scripts pnpm@12.21.0
# Only the lockfile determines the downloads, so this layer is cached until it changes.
COPY pnpm-lock.yaml pnpm-workspace.yaml ./
RUN pnpm fetch --ignore-scripts
COPY . .
RUN pnpm install --frozen-lockfile --offline --ignore-scripts
# The generator searches for an engine that it does not use; any file satisfies it.
RUN PRISMA_SCHEMA_ENGINE_BINARY=/bin/true pnpm exec prisma generate --schema prisma/schema.prisma --no-hints \
 && node scripts/build/migration-names.mjs
RUN pnpm exec tsc --build services/management services/dispatcher services/migrate \
 && node scripts/build/service-bundle.mjs \
 && node scripts/build/client-api.mjs \
 && pnpm --filter @runhook/console build
RUN pnpm --filter @runhook/management deploy --prod --ignore-scripts /out/management \
 && pnpm --filter @runhook/dispatcher deploy --prod --ignore-scripts /out/dispatcher \
 && pnpm --filter @runhook/migrate deploy --prod --ignore-scripts /out/migrate \
 && node scripts/build/prune-image.mjs /out/management /out/dispatcher /out/migrate

FROM base AS runtime
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.vendor="Runhook" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/runhook/runhook" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV NODE_ENV=production
# Limits malloc to one arena per process: others use memory and save no time (ADR 56).
ENV MALLOC_ARENA_MAX=1
WORKDIR /app
# A numeric user, so that a cluster can verify that it is not root. It owns no files, so it cannot change any.
USER 10001:10001
# Sizes the heap relative to the memory of the container. A service has more flags, as in the start command of its
# package.
ENTRYPOINT ["node", "--max-old-space-size-percentage=65"]
CMD ["dist/main.js"]

FROM runtime AS management
LABEL org.opencontainers.image.title="Runhook management" \
      org.opencontainers.image.description="The API and the console; operators' commands: dist/admin.js"
# The young generation is small, because few objects of a request survive, and the old generation is collected after it has
# grown by a third (ADR 56). One file starts in half the time (ADR 56). Prisma uses WebAssembly, which is compiled lazily and
# without a second, optimized version.
CMD ["--expose-gc", "--max-semi-space-size=8", "--heap-growing-percent=30", "--no-allocation-site-pretenuring", "--wasm-lazy-compilation", "--no-wasm-tier-up", "dist/bundle.js"]
COPY --from=build /out/management ./
EXPOSE 3000
EXPOSE 3004
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 3000}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]

FROM runtime AS dispatcher
LABEL org.opencontainers.image.title="Runhook dispatcher" \
      org.opencontainers.image.description="Fans events out and delivers them; as many of them as the load needs"
# As for management, with twice the young generation, and one thread that collects it (ADR 56).
CMD ["--expose-gc", "--max-semi-space-size=16", "--heap-growing-percent=30", "--no-allocation-site-pretenuring", "--single-threaded-gc", "--concurrent-sweeping", "dist/bundle.js"]
COPY --from=build /out/dispatcher ./
EXPOSE 3001
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 3001}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]

FROM runtime AS migrate
LABEL org.opencontainers.image.title="Runhook migrate" \
      org.opencontainers.image.description="Brings the database to the schema of this release, and exits"
COPY --from=build /out/migrate ./
COPY --from=build /src/prisma/migrations ./prisma/migrations
HEALTHCHECK NONE
