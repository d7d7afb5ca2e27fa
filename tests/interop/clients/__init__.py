"""One face for clients of different makers, so that one test meets them all."""

from clients.gmqtt_client import GmqttClient
from clients.model import Connect, Message, MqttClient, Properties, Will
from clients.mosquitto_tools import MosquittoTools
from clients.paho_client import PahoClient

__all__ = [
    "Connect",
    "GmqttClient",
    "Message",
    "MosquittoTools",
    "MqttClient",
    "PahoClient",
    "Properties",
    "Will",
]
