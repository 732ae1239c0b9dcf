# Runs before shoal in each pod: a Secret volume is read-only and open to its group, and shoal must write beside the key.
# The key goes to a volume that stays with the pod's name, once; the password file, which libpq refuses unless nobody
# else may read it, to memory.
set -eu
umask 077
secret=${SECRET:-/run/secret}
key=${KEY:-/var/lib/shoal/key}
run=${RUN:-/run/shoal}

mkdir -p "$key"
if [ ! -e "$key/shoal.key" ]; then
    cp "$secret/shoal.key" "$key/shoal.key.new"
    sync "$key/shoal.key.new"
    mv "$key/shoal.key.new" "$key/shoal.key"
fi
if ! cmp -s "$secret/shoal.key" "$key/shoal.key"; then
    echo "the Secret has another key than $key/shoal.key: a stream is never continued with another key" >&2
    exit 1
fi
# Whoever mounts a volume for a group opens its files to that group.
chmod 700 "$key"
chmod 600 "$key"/*
cp "$secret/pgpass" "$run/pgpass.new"
chmod 600 "$run/pgpass.new"
mv "$run/pgpass.new" "$run/pgpass"
