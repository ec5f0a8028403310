// SPDX-License-Identifier: MIT
// A service: a request is a method called by reflection, as frameworks do.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

public class Handler {
    static final Object lock = new Object();
    static List<int[]> live = new ArrayList<>();
    static volatile long sink;

    interface Task {
        void run(CountDownLatch begun) throws Exception;
    }

    static void behind(Task task) throws Exception {
        CountDownLatch begun = new CountDownLatch(1);
        Thread helper = new Thread(() -> {
            try {
                task.run(begun);
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        }, "helper");
        helper.setDaemon(true);
        helper.start();
        begun.await();
    }

    static void holdLock(CountDownLatch begun) throws Exception {
        synchronized (lock) {
            begun.countDown();
            Thread.sleep(150);
        }
    }

    // A counted loop, in which there is no safepoint: some 150 ms of it.
    static long counted(int n) {
        long sum = 1;
        for (int i = 0; i < n; i++)
            sum = sum * 31 + (sum >>> 7) + i;
        return sum;
    }

    static int rounds = 20000000;

    public static void quick() {}

    public static void waitForLock() {
        synchronized (lock) {
            sink++;
        }
    }

    public static void collect() {
        System.gc();
    }

    // Another thread wants all to stop while a third cannot.
    public static void allocate() {
        long end = System.nanoTime() + 40_000_000;
        while (System.nanoTime() < end)
            sink += new int[16].length;
    }

    static void prepare(String what) throws Exception {
        if (what.equals("waitForLock"))
            behind(Handler::holdLock);
        if (what.equals("allocate")) {
            behind(begun -> { begun.countDown(); sink += counted(rounds); });
            behind(begun -> { begun.countDown(); Thread.sleep(5); System.gc(); });
        }
    }

    public static void main(String[] args) throws Exception {
        // Compiled, and as many rounds as take 150 ms here.
        for (int i = 0; i < 20000; i++)
            sink += counted(1000);
        long before = System.nanoTime();
        sink += counted(rounds);
        rounds = (int) Math.min(2000000000L, rounds * 150000000L / (System.nanoTime() - before));
        if (args.length > 0)
            for (int i = 0; i < 4000000; i++)
                live.add(new int[4]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String what; (what = in.readLine()) != null;) {
            Method method = Handler.class.getMethod(what);
            prepare(what);
            long start = System.nanoTime();
            method.invoke(null);
            System.out.println("total=" + (System.nanoTime() - start));
        }
    }
}
