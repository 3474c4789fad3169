#!/usr/bin/env bash
# Gradescope runs this once, when the image of the assignment is built: Python, the kit's requirements, a user.
# Choose a base image with Python 3.11 or newer (Ubuntu 24.04). The folders can be set from outside to try it.
set -euo pipefail

base=${AUTOGRADER_DIR:-/autograder}
source=${AUTOGRADER_SOURCE:-$base/source}
python=${AUTOGRADER_BASE_PYTHON:-python3}

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null && [ -z "${AUTOGRADER_DIR:-}" ]; then
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3 python3-venv
fi
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "Python 3.11 or newer is needed: choose the base image Ubuntu 24.04"; exit 1; }

"$python" -m venv ${AUTOGRADER_VENV_OPTIONS:-} "$base/venv"
if [ -z "${AUTOGRADER_NO_INSTALL:-}" ]; then
    "$base/venv/bin/pip" install --no-cache-dir -r "$source/requirements.txt"
fi
site=$("$base/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "$source/kit" > "$site/break_the_loop.pth"

# The loops run as a user of their own, who can read neither the kit nor the results.
if [ "$(id -u)" -eq 0 ] && [ -z "${AUTOGRADER_DIR:-}" ]; then
    id loop >/dev/null 2>&1 || useradd --system --no-create-home --shell /usr/sbin/nologin loop
    chmod -R go-rwx "$source"
fi
