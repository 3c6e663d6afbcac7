import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

/** The batch of `fermata schema resolve --batch`, answered by Apache Avro for Java. */
public class Resolve {
  static byte[] resolve(Schema writer, Schema reader, byte[] body) throws Exception {
    ByteArrayInputStream in = new ByteArrayInputStream(body);
    BinaryDecoder decoder = DecoderFactory.get().directBinaryDecoder(in, null);
    Object value = new GenericDatumReader<Object>(writer, reader).read(null, decoder);
    if (in.available() > 0)
      throw new IllegalStateException("left over");
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(out, null);
    new GenericDatumWriter<Object>(reader).write(value, encoder);
    encoder.flush();
    return out.toByteArray();
  }

  public static void main(String[] args) throws Exception {
    ObjectMapper mapper = new ObjectMapper();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = lines.readLine()) != null;) {
      JsonNode request = mapper.readTree(line);
      ObjectNode answer = mapper.createObjectNode();
      answer.set("id", request.get("id"));
      try {
        Schema writer = new Schema.Parser().parse(request.get("writer").asText());
        Schema reader = new Schema.Parser().parse(request.get("reader").asText());
        answer.put("body", resolve(writer, reader, request.get("body").binaryValue()));
        answer.put("ok", true);
      } catch (Exception | StackOverflowError | OutOfMemoryError e) {
        answer.put("ok", false);
        answer.put("error", e.getClass().getSimpleName() + ": " + e.getMessage());
      }
      System.out.println(mapper.writeValueAsString(answer));
    }
  }
}
