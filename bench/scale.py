#!/usr/bin/env python3
"""How a run over windows scales with the number of ranks: a simulation of clients/cluster/ from costs
that were measured, and what the limit is. bench/NOTES.md has what came out.

usage: scale.py [--windows N] [--window-seconds X] [--spread X] [--model-gb X] [--disk-gbs X]
                [--server-gbs X] [--heads N] [--scored N] [RANKS...]

  --windows         units to evaluate                                            (default: 564)
  --window-seconds  of one rank for one window; 8.2: 8 billion weights, 512 tokens, 1 TFLOP/s
  --spread          ranks differ in speed by up to this share, evenly            (default: 0.05)
  --model-gb        that each rank reads once                                    (default: 4.9)
  --disk-gbs        GB/s from a rank's own disk or page cache                    (default: 2)
  --server-gbs      instead, GB/s of a file server that all share; 0: none       (default: 0)
  --heads           1: perplexity; 2 and more: a divergence                      (default: 1)
  --scored          positions of a window                                        (default: 256)

Rank 0 evaluates, too. A rank asks for the next window when it has sent the last one's scores; rank
0 takes scores one message at a time.
"""
import argparse
import heapq
import random

# Measured on two cores of a virtual machine (Sapphire Rapids class).
START_S = 1.0           # mpirun, MPI_Init, the broadcast
CONNECT_S = 0.2e-3      # of each rank, one after the other
MESSAGE_S = 0.1e-3      # of rank 0 for a batch: receive, take, commit
JOURNAL_S = 30e-6       # append an entry
LATENCY_S = 0.1e-3      # of the network, there and back
NETWORK_BYTES_S = 1e9
ROW, TARGET, PAIR = 32, 16, 32  # bytes of the scorer's structures


def bytes_of_window(o):
    return o.scored * (o.heads * (ROW + TARGET) + (o.heads * PAIR if o.heads > 1 else 0))


def open_seconds(o, n):
    """Until a rank has its weights; they come in while the first window is evaluated."""
    return o.model_gb * n / o.server_gbs if o.server_gbs else o.model_gb / o.disk_gbs


def simulate(o, n):
    """(seconds of the whole run, seconds that rank 0's thread of control is busy)"""
    rng = random.Random(n)
    speed = [1.0] + [1 + o.spread * (2 * rng.random() - 1) for _ in range(n - 1)]
    begin = START_S + CONNECT_S * n
    loaded = begin + open_seconds(o, n)
    per_message = MESSAGE_S + JOURNAL_S + bytes_of_window(o) / NETWORK_BYTES_S
    free = [(begin, rank) for rank in range(n)]
    heapq.heapify(free)
    busy_until = begin
    fresh, end = set(range(n)), begin
    for _ in range(o.windows):
        now, rank = heapq.heappop(free)
        done = now + o.window_seconds * speed[rank]
        if rank in fresh:  # the first window waits for the weights, too
            fresh.discard(rank)
            done = max(done, loaded)
        sent = done + (LATENCY_S if rank else 0)
        busy_until = max(busy_until, sent) + per_message
        end = max(end, busy_until)
        heapq.heappush(free, (busy_until, rank))
    return end, per_message * o.windows


def limit(o, n, seconds, busy):
    """What most of the time beyond an even division is for."""
    even = o.windows * o.window_seconds / n
    rounds = -(-o.windows // n) * o.window_seconds
    waits = max(0.0, open_seconds(o, n) - o.window_seconds)  # beyond the first window
    shares = {"whole windows": rounds - even, "reading the model": waits,
              "starting": START_S + CONNECT_S * n, "rank 0": busy,
              "unequal ranks": o.spread * rounds if n > 1 else 0.0}
    name = max(shares, key=shares.get)
    return name, shares[name] / seconds


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name, default in (("windows", 564), ("heads", 1), ("scored", 256)):
        parser.add_argument("--" + name, type=int, default=default)
    for name, default in (("window-seconds", 8.2), ("spread", 0.05), ("model-gb", 4.9),
                          ("disk-gbs", 2.0), ("server-gbs", 0.0)):
        parser.add_argument("--" + name, type=float, default=default)
    parser.add_argument("ranks", type=int, nargs="*",
                        default=[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024])
    o = parser.parse_args()
    one = o.windows * o.window_seconds  # of a rank of mean speed
    print("| ranks | seconds | speed-up | efficiency | rank 0 busy | most is lost to |")
    print("| ---: | ---: | ---: | ---: | ---: | --- |")
    for n in o.ranks:
        seconds, busy = simulate(o, n)
        name, share = limit(o, n, seconds, busy)
        print(f"| {n} | {seconds:.1f} | {one / seconds:.1f} | {100 * one / seconds / n:.1f} % "
              f"| {100 * busy / seconds:.2f} % | {name}, {100 * share:.1f} % |")


if __name__ == "__main__":
    main()
