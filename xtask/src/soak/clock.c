/* A wall clock that jumps: adds the seconds in the file $SOAK_CLOCK. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile long long *jumped;

__attribute__((constructor)) static void find(void) {
    const char *path = getenv("SOAK_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *page = mmap(0, sizeof *jumped, PROT_READ, MAP_SHARED, file, 0);
    jumped = page == MAP_FAILED ? 0 : page;
    close(file);
}

int clock_gettime(clockid_t id, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, id, now);
    if (!failed && jumped && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        now->tv_sec += *jumped;
    return failed;
}
