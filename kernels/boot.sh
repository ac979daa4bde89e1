#!/bin/bash
# The first process of the virtual machine: sets it up as a plain Debian would be,
# and runs the smoke as root and as an ordinary user, each where control groups
# may be made, and where there are none.
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin TERM=dumb LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
mount -t cgroup2 cgroup /sys/fs/cgroup
chmod 1777 /tmp /dev/shm
hostname the-host
busybox ip link set lo up
chown -R 0:0 /etc /root /srv /usr
chown -R 1000:1000 /home/u

# Started in a group of its own, as systemd does for services with `Delegate=`.
groups=/sys/fs/cgroup
for name in memory pids cpu; do echo "+$name" >"$groups/cgroup.subtree_control"; done
within() {
    local owner=$1
    mkdir -p "$groups/for-$owner/server"
    chown -R "$owner" "$groups/for-$owner"
    shift
    bash -c 'echo $$ >"$0/server/cgroup.procs"; exec "$@"' "$groups/for-$owner" "$@"
}
without() { unshare --mount bash -c 'umount /sys/fs/cgroup; exec "$@"' bash "$@"; }
user=(setpriv --reuid=1000 --regid=1000 --clear-groups env HOME=/home/u)

status=0
within 0 env HOME=/root bash /smoke root cgroup || status=1
without env HOME=/root bash /smoke root none || status=1
within 1000 "${user[@]}" bash /smoke user cgroup || status=1
without "${user[@]}" bash /smoke user none || status=1
[ "$status" != 0 ] || echo 'all passed'
echo 'the end'
echo o >/proc/sysrq-trigger
sleep 60
