# Fermata's three programs in one image. `docker build -t fermata .`
#
# The image holds no key, no password and no configuration: those come in as files and variables
# (docker-compose.yml, deploy/README.md).

FROM debian:12 AS build
WORKDIR /src
# Packages first, so that a change in the code does not fetch them again.
COPY scripts/install-missing scripts/packages scripts/
RUN scripts/install-missing build
COPY . .
RUN cmake -S . -B /build -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF \
	&& cmake --build /build -j "$(nproc)" \
	&& find /build/bin -regex ".*/fermata\(-worker\|-bridge\)?" -exec install -D -s -t /out {} +

FROM debian:12
COPY scripts/install-missing scripts/packages /usr/local/lib/fermata/
RUN /usr/local/lib/fermata/install-missing run \
	&& rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* /tmp/* /usr/local/lib/fermata \
	&& groupadd --gid 10001 fermata \
	&& useradd --uid 10001 --gid fermata --no-create-home --home-dir /var/lib/fermata --shell /usr/sbin/nologin fermata \
	&& install -d -o fermata -g fermata -m 0700 /var/lib/fermata /var/lib/fermata/keys
COPY --from=build /out/ /usr/local/bin/
COPY deploy/healthcheck /usr/local/bin/fermata-healthcheck
COPY LICENSE /usr/share/doc/fermata/copyright
USER 10001:10001
WORKDIR /var/lib/fermata
ENV FERMATA_WORKER_METRICS_LISTEN=0.0.0.0:9464
EXPOSE 9464
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["fermata-healthcheck"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["fermata"]
CMD ["worker"]
