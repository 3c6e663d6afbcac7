import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaCompatibility.SchemaCompatibilityType;
import org.apache.avro.SchemaCompatibility.SchemaPairCompatibility;

/** Lines {"id","writer","reader"}, answered by Apache Avro's SchemaCompatibility: {"id","compatible","why"} or {"id","error"}. */
public class Compatible {
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
        SchemaPairCompatibility pair = SchemaCompatibility.checkReaderWriterCompatibility(reader, writer);
        answer.put("compatible", pair.getType() == SchemaCompatibilityType.COMPATIBLE);
        answer.put("why", pair.getResult().getIncompatibilities().toString());
      } catch (Exception | StackOverflowError e) {
        answer.put("error", e.getClass().getSimpleName() + ": " + e.getMessage());
      }
      System.out.println(mapper.writeValueAsString(answer));
    }
  }
}
