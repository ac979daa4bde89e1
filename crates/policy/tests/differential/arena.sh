# Builds the arena and starts the stage in it. Run as the first process of new
# namespaces, so that nothing of the machine can be reached or harmed:
# arena.sh DIRECTORY STAGE NAMES
set -e
root=$1 stage=$2 names=$3

# Shells, what passes a command on, and what words flow through. All else is a
# stand-in and nothing more.
real="sh bash env timeout nice nohup setsid stdbuf xargs find cat head tr rev base64 cut
sed awk sort grep ls wc uniq seq basename dirname tee printf echo test [ expr"

mount -t tmpfs -o size=64m,mode=755 arena "$root"
cd "$root"
mkdir -p real ctl dev proc tmp etc home/dev usr/bin usr/local/bin old
for program in $real; do
    from=$(type -P "$program") && cp -L "$from" "real/$program" || true
done
cp -L "$(type -P umount)" real/umount-old
# Libraries for those, to be read only.
for dir in usr/lib usr/lib64 lib lib64; do
    if [ -L "/$dir" ]; then
        ln -s "$(readlink "/$dir")" "$dir"
    elif [ -d "/$dir" ]; then
        mkdir -p "$dir"
        mount --rbind "/$dir" "$dir"
    fi
done
cp "$stage" usr/bin/stage
ln -s usr/bin bin
ln -s usr/bin sbin
ln -s bin usr/sbin
# Hard links: each stand-in finds its name by where it is, whatever it is called.
while read -r name; do
    ln -f usr/bin/stage "usr/bin/$name"
done <"$names"
for program in $real; do
    ln -f usr/bin/stage "usr/bin/$program"
done
mount -t proc proc proc 2>/dev/null || mount --rbind /proc proc
# Where the kernel can say it, no script makes more processes than this.
echo 600 2>/dev/null >proc/sys/kernel/pid_max || true
for device in null zero random urandom; do
    : >dev/$device
    mount --bind /dev/$device dev/$device
done
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
echo 'root:x:0:0:root:/root:/bin/bash' >etc/passwd
for dir in ctl tmp home/dev; do
    mount -t tmpfs -o size=16m,mode=755 arena "$dir"
done
printf 'one\ntwo words\ntouch pwned\n' >ctl/in
mount -o remount,bind,ro "$root"
pivot_root . old
/real/umount-old -l /old
ulimit -c 0 -f 2048 -n 128 -v 4000000
export HOME=/home/dev
# Not exec: the shell stays, to take in processes that have lost their parent.
/usr/bin/stage
exit $?
