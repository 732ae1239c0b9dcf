import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** Kafka Streams with exactly-once: a store in memory without a cache, which is its fastest, with a changelog.
 *
 * java KafkaStreams BROKERS TOPIC PARTITIONS EVENTS FOLDER; the job and its marks are those of tally.py.
 */
public class KafkaStreams {
  static final int CAP = 64;
  static final double LEAST = 0, MOST = 100;
  static final CountDownLatch ENOUGH = new CountDownLatch(1);
  static final ObjectReader EVENTS = new ObjectMapper()
      .configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false).readerFor(Event.class);
  static final OperatingSystemMXBean SYSTEM = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  static long events, seen, counted;
  static double total;

  public static class Event {
    public String user;
    public double value;
  }

  record Sums(long count, double total) {}

  static void mark(String more) {
    System.out.printf(Locale.ROOT, "{\"events\":%d,\"seconds\":%.6f,\"cpu\":%.6f%s}%n",
        seen, System.nanoTime() / 1e9, SYSTEM.getProcessCpuTime() / 1e9, more);
    System.out.flush();
  }

  static class Adder implements Processor<String, Event, Void, Void> {
    KeyValueStore<String, Sums> sums;

    public void init(ProcessorContext<Void, Void> context) {
      sums = context.getStateStore("sums");
    }

    public void process(Record<String, Event> record) {
      seen++;
      if (seen == 1 || seen % (events / 4) == 0) mark("");
      Event event = record.value();
      Sums before = sums.get(event.user);
      if (before == null || before.count < CAP) {
        double value = Math.min(Math.max(event.value, LEAST), MOST);
        counted++;
        total += value;
        sums.put(event.user, before == null ? new Sums(1, value) : new Sums(before.count + 1, before.total + value));
      }
      if (seen == events) ENOUGH.countDown();
    }
  }

  static Event parse(String topic, byte[] bytes) {
    try {
      return EVENTS.readValue(bytes);
    } catch (IOException exception) {
      throw new UncheckedIOException(exception);
    }
  }

  static byte[] bytes(String topic, Sums sums) {
    return sums == null ? null : ByteBuffer.allocate(16).putLong(sums.count).putDouble(sums.total).array();
  }

  static Sums sums(String topic, byte[] bytes) {
    if (bytes == null) return null;
    ByteBuffer buffer = ByteBuffer.wrap(bytes);
    return new Sums(buffer.getLong(), buffer.getDouble());
  }

  public static void main(String[] given) throws Exception {
    events = Long.parseLong(given[3]);
    Properties settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "streams-" + ProcessHandle.current().pid());
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, given[0]);
    settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    settings.put(StreamsConfig.STATE_DIR_CONFIG, given[4]);
    settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
    settings.put("auto.offset.reset", "earliest");
    Serde<Sums> serde = Serdes.serdeFrom(KafkaStreams::bytes, KafkaStreams::sums);
    Topology topology = new Topology();
    topology.addSource("events", new StringDeserializer(), KafkaStreams::parse, given[1]);
    topology.addProcessor("add", Adder::new, "events");
    topology.addStateStore(
        Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("sums"), Serdes.String(), serde)
            .withLoggingEnabled(Map.of()).withCachingDisabled(), "add");
    var streams = new org.apache.kafka.streams.KafkaStreams(topology, settings);
    streams.start();
    ENOUGH.await();
    streams.close();
    mark(String.format(Locale.ROOT, ",\"done\":true,\"counted\":%d,\"total\":%.6f", counted, total));
  }
}
