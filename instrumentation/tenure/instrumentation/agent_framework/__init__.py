"""Microsoft agent-framework: who owned what and when in its workflows.

Importing this package does not load the engine; `instrument()` does.
"""

from tenure.instrumentation.agent_framework._instrumentor import (
    AgentFrameworkInstrumentor,
)

__all__ = ["AgentFrameworkInstrumentor"]
