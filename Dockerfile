# The gateway as an image: no compiler, no demo, no development dependency; it writes nothing to its own file system.
# How to run it: docs/operations.md.
FROM node:24-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json ./
COPY src ./src
COPY schemas ./schemas
COPY LICENSE ./
# Whatever the umask of the checkout was, the gateway's user has to be able to read.
RUN node node_modules/typescript/bin/tsc -p src --sourceMap false \
  && rm -r dist/demo \
  && npm ci --omit=dev \
  && chmod -R a+rX package.json LICENSE schemas dist node_modules

FROM node:24-bookworm-slim
LABEL org.opencontainers.image.title="Gatehouse" \
  org.opencontainers.image.description="A declarative authentication gateway and reverse proxy for OpenID Connect" \
  org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production
WORKDIR /opt/gatehouse
COPY --from=build /build/package.json /build/LICENSE ./
COPY --from=build /build/schemas ./schemas
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/dist ./dist
# By number, so that Kubernetes can see that it is not root. It is the user "node".
USER 1000:1000
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=10s --retries=3 \
  CMD ["node", "/opt/gatehouse/dist/main.js", "health", "--config", "/etc/gatehouse/gateway.yaml"]
ENTRYPOINT ["node", "/opt/gatehouse/dist/main.js"]
CMD ["run", "--config", "/etc/gatehouse/gateway.yaml"]
