# The gateway as an image: no compiler, no demo, no development dependency; it writes nothing to its own file system. Nothing
# in it belongs to one processor but Node.js itself: `docker buildx build --platform linux/amd64,linux/arm64 .` makes both.
# How to run it: docs/deploying.md.
# A release names the base image with its digest: docs/deploying.md.
ARG BASE=node:24-bookworm-slim

FROM $BASE AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
COPY packages ./packages
COPY bench/package.json ./bench/
COPY chaos/package.json ./chaos/
RUN npm ci
COPY src ./src
COPY examples/demo ./examples/demo
COPY schemas ./schemas
COPY .ci/bundle.mjs .ci/bundle-rules.mjs .ci/bundled-packages.mjs .ci/fetch-classes.mjs .ci/schema-validator.mjs ./.ci/
COPY LICENSE ./
# The demo and the source maps are for developers. Whatever the umask of the checkout was, the gateway's user has to be able to read.
RUN node .ci/bundle.mjs dist \
  && rm -r dist/demo dist/*.map \
  && chmod -R a+rX package.json LICENSE schemas dist \
  && chmod a+x dist/main.js

FROM $BASE
ARG BASE
ARG VERSION=0.1.0
ARG REVISION=
LABEL org.opencontainers.image.title="Gatehouse" \
  org.opencontainers.image.description="A declarative authentication gateway and reverse proxy for OpenID Connect" \
  org.opencontainers.image.licenses="Apache-2.0" \
  org.opencontainers.image.source="https://github.com/gatehouse-proxy/gatehouse" \
  org.opencontainers.image.version="$VERSION" \
  org.opencontainers.image.revision="$REVISION" \
  org.opencontainers.image.base.name="docker.io/library/$BASE"
ENV NODE_ENV=production
WORKDIR /opt/gatehouse
COPY --from=build /build/package.json /build/LICENSE ./
COPY --from=build /build/schemas ./schemas
COPY --from=build /build/dist ./dist
COPY gateway.example.yaml ./
# What Node.js compiles is kept, which saves a seventh of a start. It belongs to root: no process can put code there. Node.js keeps
# it by user, processor, version and flags: the flags here are those of the start command and of the health check below. Other
# users start without it. Nothing installs packages after this step. A new volume at /var/lib/gatehouse belongs to the user, too.
ENV NODE_COMPILE_CACHE=/opt/gatehouse/compile-cache
RUN install -d -o 1000 -g 1000 "$NODE_COMPILE_CACHE" /var/lib/gatehouse \
  && as_user="setpriv --reuid=1000 --regid=1000 --clear-groups" \
  && DEMO_CLIENT_SECRET=tried-while-building $as_user node --max-semi-space-size=4 --heap-growing-percent=100 --no-maglev --expose-gc \
  dist/main.js check --config gateway.example.yaml >/dev/null \
  && $as_user node --max-semi-space-size=4 --heap-growing-percent=100 --no-maglev --expose-gc dist/main.js run --help >/dev/null \
  && $as_user node dist/main.js health --help >/dev/null \
  && chown -R 0:0 "$NODE_COMPILE_CACHE" \
  && chmod -R a+rX,go-w "$NODE_COMPILE_CACHE" gateway.example.yaml \
  && ln -s /opt/gatehouse/dist/main.js /usr/local/bin/gatehouse \
  && rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
  /usr/local/bin/yarn /usr/local/bin/yarnpkg /opt/yarn-*
# By number, so that Kubernetes can see that it is not root. It is the user "node".
USER 1000:1000
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
  CMD ["node", "/opt/gatehouse/dist/main.js", "health", "--config", "/etc/gatehouse/gateway.yaml"]
# Less memory, and what that costs: docs/performance.md, "Memory".
ENV MALLOC_ARENA_MAX=1
ENV MALLOC_MMAP_THRESHOLD_=32768
ENV MALLOC_TRIM_THRESHOLD_=4194304
ENTRYPOINT ["node", "--max-semi-space-size=4", "--heap-growing-percent=100", "--no-maglev", "--expose-gc", "/opt/gatehouse/dist/main.js"]
CMD ["run", "--config", "/etc/gatehouse/gateway.yaml"]
