/* A load generator that shares nothing with `thrum bench` but the clock: pairs of libmosquitto clients, one thread that
 * sends on a schedule, one that receives. It prints quantiles of the latency in nanoseconds: `seen` by a user (from the
 * intended send), `service` without its own late sends (from the actual one), and `arrived` without the time in which
 * it read the message too (until the kernel said that there is something to read).
 *
 *   generator PORT PAIRS MESSAGES_PER_SECOND SECONDS
 */
#define _GNU_SOURCE
#include <errno.h>
#include <mosquitto.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAIRS_MAX 100
#define WARM_UP_NS 1000000000ull

struct times {
    uint64_t due_ns;
    uint64_t sent_ns;
};

static struct mosquitto *publishers[PAIRS_MAX], *subscribers[PAIRS_MAX];
static int pairs;
static uint64_t *seen_ns, *service_ns, *arrived_ns;
static uint64_t readable_ns;
static size_t received, wanted, subscribed;
static uint64_t counts_from_ns;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static void fail(const char *what, int code)
{
    fprintf(stderr, "%s: %s\n", what, mosquitto_strerror(code));
    exit(1);
}

static void on_message(struct mosquitto *client, void *user, const struct mosquitto_message *message)
{
    struct times times;
    uint64_t at_ns = now_ns();
    (void)client;
    (void)user;
    if (message->payloadlen < (int)sizeof times)
        return;
    memcpy(&times, message->payload, sizeof times);
    if (times.due_ns < counts_from_ns || received == wanted)
        return;
    seen_ns[received] = at_ns - times.due_ns;
    service_ns[received] = at_ns - times.sent_ns;
    arrived_ns[received] = readable_ns > times.sent_ns ? readable_ns - times.sent_ns : 0;
    received++;
}

static void on_subscribe(struct mosquitto *client, void *user, int id, int count, const int *granted)
{
    (void)client, (void)user, (void)id, (void)count, (void)granted;
    subscribed++;
}

static struct mosquitto *connected(const char *kind, int number, int port)
{
    char id[32];
    struct mosquitto *client;
    int code;
    snprintf(id, sizeof id, "independent-%s-%d", kind, number);
    client = mosquitto_new(id, true, NULL);
    mosquitto_message_callback_set(client, on_message);
    mosquitto_subscribe_callback_set(client, on_subscribe);
    mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
    if ((code = mosquitto_connect(client, "127.0.0.1", port, 60)))
        fail("connect", code);
    return client;
}

static void *receive(void *until)
{
    struct pollfd sockets[PAIRS_MAX];
    while (now_ns() < *(uint64_t *)until) {
        for (int pair = 0; pair < pairs; pair++)
            sockets[pair] = (struct pollfd){mosquitto_socket(subscribers[pair]), POLLIN, 0};
        if (poll(sockets, (nfds_t)pairs, 20) <= 0)
            continue;
        readable_ns = now_ns();
        for (int pair = 0; pair < pairs; pair++)
            if (sockets[pair].revents & POLLIN)
                mosquitto_loop_read(subscribers[pair], 100);
    }
    return NULL;
}

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static void print(const char *name, uint64_t *values)
{
    qsort(values, received, sizeof *values, compare);
    printf("%s_p50 %llu\n%s_p90 %llu\n", name, (unsigned long long)values[received / 2], name,
           (unsigned long long)values[received * 9 / 10]);
}

int main(int count, char **words)
{
    if (count != 5) {
        fprintf(stderr, "usage: generator PORT PAIRS MESSAGES_PER_SECOND SECONDS\n");
        return 2;
    }
    int port = atoi(words[1]);
    uint64_t rate = strtoull(words[3], NULL, 10), seconds = strtoull(words[4], NULL, 10);
    pairs = atoi(words[2]);
    if (pairs < 1 || pairs > PAIRS_MAX || rate < 1 || rate > 1000000 || seconds < 1 || seconds > 60)
        return 2;
    wanted = (size_t)(rate * seconds);
    seen_ns = calloc(wanted, sizeof *seen_ns);
    service_ns = calloc(wanted, sizeof *service_ns);
    arrived_ns = calloc(wanted, sizeof *arrived_ns);
    mosquitto_lib_init();
    for (int pair = 0; pair < pairs; pair++) {
        char topic[32];
        snprintf(topic, sizeof topic, "independent/%d", pair);
        publishers[pair] = connected("p", pair, port);
        subscribers[pair] = connected("s", pair, port);
        while (mosquitto_loop(publishers[pair], 100, 1), mosquitto_loop(subscribers[pair], 100, 1),
               mosquitto_subscribe(subscribers[pair], NULL, topic, 0))
            ;
        while (subscribed <= (size_t)pair)
            mosquitto_loop(subscribers[pair], 100, 1);
    }
    uint64_t start_ns = now_ns() + 100000000ull;
    uint64_t sends_until_ns = start_ns + WARM_UP_NS + seconds * 1000000000ull;
    uint64_t ends_ns = sends_until_ns + 1000000000ull;
    pthread_t receiver;
    counts_from_ns = start_ns + WARM_UP_NS;
    pthread_create(&receiver, NULL, receive, &ends_ns);
    for (uint64_t number = 0;; number++) {
        struct times times = {start_ns + number * 1000000000ull / rate, 0};
        struct timespec due = {(time_t)(times.due_ns / 1000000000ull), (long)(times.due_ns % 1000000000ull)};
        char topic[32];
        int pair = (int)(number % (uint64_t)pairs), code;
        if (times.due_ns >= sends_until_ns)
            break;
        while (now_ns() < times.due_ns)
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        snprintf(topic, sizeof topic, "independent/%d", pair);
        times.sent_ns = now_ns();
        if ((code = mosquitto_publish(publishers[pair], NULL, topic, sizeof times, &times, 0, false)))
            fail("publish", code);
    }
    pthread_join(receiver, NULL);
    if (received < wanted * 99 / 100) {
        fprintf(stderr, "%zu of %zu messages arrived\n", received, wanted);
        return 1;
    }
    print("seen", seen_ns);
    print("service", service_ns);
    print("arrived", arrived_ns);
    return 0;
}
