# SPDX-License-Identifier: Apache-2.0
# A Python program that knows nothing of NVTX, with a thread of its own.
import threading


def leaf(number):
    return number + 1


def work(count):
    for number in range(count):
        leaf(number)


def loader():
    print(threading.get_native_id())
    work(3)


thread = threading.Thread(target=loader)
thread.start()
thread.join()
work(3000)
