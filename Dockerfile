# One static binary in an empty image. It runs as nobody in particular (65532) and writes only to /tmp and to volumes.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=0.0.0-dev
ARG COMMIT=unknown
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION} -X main.commit=${COMMIT}" \
      -o /out/catalogd ./cmd/catalogd \
 && mkdir -p /out/tmp /out/secrets && chmod 1777 /out/tmp

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/catalogd /catalogd
COPY --from=build --chown=65532:65532 /out/tmp /tmp
# A volume that is mounted here takes over owner and mode, so the server may write the root credential there.
COPY --from=build --chown=65532:65532 --chmod=700 /out/secrets /secrets
USER 65532:65532
# Health and metrics stay inside the container's network unless somebody publishes them.
ENV CATALOGD_LISTEN=0.0.0.0:8181 CATALOGD_OPS_LISTEN=0.0.0.0:8182
EXPOSE 8181 8182
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s CMD ["/catalogd", "doctor", "--ready"]
ENTRYPOINT ["/catalogd"]
CMD ["serve"]
